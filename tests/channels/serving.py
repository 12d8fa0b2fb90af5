"""A process that serves a channel, to be killed: forked, with a model of its own that echoes."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from pydantic_ai import Agent

from clew import runtime
from clew.agent.failover import ModelChain, RetryPolicy
from clew.agent.loop import AgentLoop
from clew.api.server import serve_api
from clew.config import load_settings
from clew.engine.engine import Engine
from clew.gateway.gateway import Gateway
from clew.store.opening import open_store
from tests.channels.desk import echo, table
from tests.killing.killer import Killer, Place, WatchedStore
from tests.killing.records import Log, Ready
from tests.line.model import Scripted
from tests.line.points import Points
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from clew.store.contract import Store, Tx

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True, slots=True)
class Serve:
    """Services of a process, and the point at which it is killed."""

    folder: Path
    store_url: str
    #: The channel's name and its table.
    channel: str
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    place: Place | None = None
    #: The address of the API, for platforms that call it.
    port: int | None = None
    #: The process that is to be killed ends no answer before its beginning is shown.
    shows: bool = False

    @property
    def log(self) -> Log:
        return Log(self.folder / "kills.log")


def main(job: Serve) -> None:
    """Serve until SIGTERM, or until the place is come to."""
    output = os.open(job.folder / "output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    asyncio.run(_until_terminated(job))


async def _until_terminated(job: Serve) -> None:
    serving = asyncio.create_task(_serve(job))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    job.log.add(Ready())
    with suppress(asyncio.CancelledError):
        await serving


class _ArmedByPlace(WatchedStore):
    """A place counts once a message is heard whose text is its name, and all before it is sent."""

    def __init__(self, inner: Store, killer: Killer, place: Place | None) -> None:
        super().__init__(inner, killer.reach)
        self._killer, self._place = killer, place
        #: From now on the place counts.
        self.armed = False

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        said = getattr(args[0], "text", None) if args else None
        if self._place is not None and said == self._place.name:

            async def closed() -> bool:
                return not await self.read(_open)

            await wait_until(closed, "no delivery under way")
            self._killer.arm()
            self.armed = True
        return await super().write(job, *args, **kwargs)


def _wait_until_shown(points: Points, store: _ArmedByPlace) -> None:
    async def wait() -> None:
        if not store.armed:
            # An answer that a process before this one has begun.
            _wait_until_shown(points, store)
            return
        await wait_until(shown, "the beginning of the answer is shown")

    async def shown() -> bool:
        return await store.read(_is_shown)

    points.arm("piece 'said:'", wait)


def _is_shown(t: Tx) -> bool:
    return t.fetch_one("SELECT 1 FROM preview WHERE platform_id IS NOT NULL") is not None


def _open(t: Tx) -> bool:
    """Return whether an answer or a delivery is due."""
    unanswered = t.fetch_one("SELECT 1 FROM inbox WHERE outcome IS NULL LIMIT 1")
    unfinished = t.fetch_one("SELECT 1 FROM turn WHERE state <> 'done' LIMIT 1")
    unsent = t.fetch_one(
        "SELECT 1 FROM delivery WHERE state NOT IN ('delivered', 'failed') LIMIT 1"
    )
    return bool(unanswered or unfinished or unsent)


async def _serve(job: Serve) -> None:
    own = {"allow": "*", "double_text": "queue", **job.settings}
    flags = {
        "model.name": "openai-chat:none",
        "model.base_url": "http://127.0.0.1:9/v1",
        "api.port": str(job.port or 0),
        **table(job.channel, own),
    }
    settings = load_settings(home=job.folder, flags=flags, environ={})
    inner = await open_store(job.store_url, home=job.folder)
    killer = Killer(job.place, job.log, job.folder)
    points = Points()
    async with _ArmedByPlace(inner, killer, job.place) as store:
        if job.shows:
            _wait_until_shown(points, store)
        means = replace(
            runtime.build_services(settings, store),
            loop=AgentLoop(Agent(), max_steps=5),
            models=ModelChain([Scripted(points, echo).model], RetryPolicy(), _no_time),
        )
        async with Engine(means, role="serve", version="0") as engine, Gateway(engine, settings):
            if job.port is None:
                await asyncio.Event().wait()
            await serve_api(engine, settings)


def _no_time() -> float:
    return 0.0
