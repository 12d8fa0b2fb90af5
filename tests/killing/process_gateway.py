"""A gateway whose agent runs commands, with its watcher, in a process that is killed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew import runtime
from clew.background import run_in_background
from clew.core.route import Route
from clew.engine.engine import Engine
from clew.features.shell.watcher import ProcessWatcher
from clew.plugin.loading import get_features, load_settings_with_features
from clew.store.opening import open_store
from tests.killing.child import until_terminated
from tests.killing.killer import Killer, WatchedStore
from tests.killing.records import Log

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.config.settings import Settings
    from clew.store.contract import Store
    from tests.killing.killer import Place


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewayJob:
    """Orders of a gateway."""

    home: Path
    store_url: str
    provider: str
    #: Said at the start, each in a chat of its own; what was said before is not said again.
    messages: tuple[str, ...] = ()
    place: Place | None = None


def load_gateway_settings(job: GatewayJob) -> Settings:
    flags = {
        "model.name": "openai-chat:fake-model",
        "model.base_url": job.provider,
        "store.url": job.store_url,
    }
    return load_settings_with_features(home=job.home, flags=flags, environ={})


async def open_gateway_store(job: GatewayJob) -> Store:
    schemas = get_features(load_gateway_settings(job)).schemas
    return await open_store(job.store_url, home=job.home, features=schemas)


def run_gateway(job: GatewayJob) -> None:
    """Work until the process is killed or asked to end."""
    asyncio.run(until_terminated(_run(job)))


async def _run(job: GatewayJob) -> None:
    async with open_gateway(job):
        await asyncio.Event().wait()


@asynccontextmanager
async def open_gateway(job: GatewayJob) -> AsyncGenerator[Store]:
    """Say everything to an agent whose commands are watched; killed at its place, if it has one."""
    killer = Killer(job.place, Log(job.home / "fronts.log"), job.home)
    async with WatchedStore(await open_gateway_store(job), killer.reach) as store:
        services = runtime.build_services(load_gateway_settings(job), store)
        killer.arm()
        async with Engine(services, role="test", version="0") as engine:
            watcher = ProcessWatcher(services.feature_context)
            async with run_in_background(watcher.run(), name="watcher"):
                await _say_all(engine, job.messages)
                yield store


async def _say_all(engine: Engine, messages: tuple[str, ...]) -> None:
    for text in messages:
        said = replace(engine.new_input(text), event=("test", "bot", text))
        route = Route(platform="telegram", kind="dm", chat=text.replace(" ", "-"))
        await engine.submit(said, target=route)
