"""A gateway whose agent runs commands: an engine over a store, and a watcher that looks on call."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clew.agent.models import close_models_on_exit
from clew.core.route import Route
from clew.core.scope import LOCAL
from clew.engine.engine import Engine
from clew.features import shell
from clew.features.shell import processes, supervision
from clew.features.shell.settings import ShellSettings
from clew.features.shell.watcher import ProcessWatcher
from clew.plugin.registry import Features
from clew.runtime import build_services
from clew.store.checks.registry import find_all
from clew.store.opening import open_store
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.integration.api_server import settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.features.shell.processes import ShellProcess
    from clew.plugin import FeatureContext
    from clew.sandbox.process_folder import ProcessFolder
    from clew.store.contract import Store, Tx
    from clew.testing import ProviderRequest, Reply

CHAT = Route(platform="telegram", kind="dm", chat="42")


@dataclass(kw_only=True)
class ProcessWorld:
    """Everything that a test of processes needs."""

    engine: Engine
    provider: FakeProvider
    store: Store
    context: FeatureContext
    watcher: ProcessWatcher

    async def say(self, text: str, route: Route = CHAT) -> ConversationId:
        accepted = await self.engine.submit(text, target=route)
        await self.engine.wait_for_input(accepted)
        return accepted.conversation_id

    async def list(self) -> list[ShellProcess]:
        """All processes, in the order of their start."""
        found = await self.store.read(processes.list_processes, viewer=LOCAL)
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def folder_of(self, process: ShellProcess) -> ProcessFolder:
        return supervision.find_folder(self.context.settings, process.id)

    async def look_until_ended(self) -> list[ShellProcess]:
        """Look until no process is open; return all."""

        async def has_ended() -> bool:
            await self.watcher.look()
            return not await self.store.read(processes.list_open)

        await wait_until(has_ended)
        return await self.list()

    async def quiet(self) -> None:
        """Wait until nothing is open, and check the store."""

        async def is_done() -> bool:
            return await self.store.read(_count_open) == 0

        await wait_until(is_done)
        assert await self.store.read(find_all) == []

    async def completions(self) -> list[str]:
        """The texts of all inputs that tell an end."""
        return await self.store.read(_read_completions)


def _count_open(t: Tx) -> int:
    return t.fetch_value(
        "SELECT (SELECT count(*) FROM inbox WHERE outcome IS NULL)"
        " + (SELECT count(*) FROM turn WHERE state = 'running')"
    )


def _read_completions(t: Tx) -> list[str]:
    return t.fetch_column("SELECT text FROM inbox WHERE kind = 'completion' ORDER BY n")


def told(provider: FakeProvider) -> list[str]:
    """The results of all calls, as the model was told them."""
    sent: dict[str, Any] = provider.requests[-1].json or {}
    return [each["content"] for each in sent["messages"] if each["role"] == "tool"]


def shell_call(command: str, **more: object) -> ScriptedCall:
    return ScriptedCall("shell", {"command": command, **more})


def answer_with(*calls: ScriptedCall) -> Callable[[ProviderRequest], Reply]:
    """Make these calls once; answer everything else."""
    waiting = [Calls(calls)]
    return lambda _: waiting.pop() if waiting else Text("noted")


@asynccontextmanager
async def open_processes(
    home: Path,
    url: str,
    answer: Callable[[ProviderRequest], Reply],
    *,
    foreground: int = 120,
    level: str = "work",
) -> AsyncGenerator[ProcessWorld]:
    """Open a gateway whose watcher looks only when a test says so."""
    features = Features()
    features.register("shell", shell.register)
    with FakeProvider(answer) as provider:
        async with (
            close_models_on_exit(),
            await open_store(url, home=home, features=features.schemas) as store,
        ):
            settings = settings_for(home, provider=provider)
            settings = replace(
                settings,
                sandbox=replace(settings.sandbox, level=level),
                sections={**settings.sections, "shell": ShellSettings(foreground=foreground)},
            )
            features.bind_settings(settings)
            services = build_services(settings, store, features)
            async with Engine(services, role="test", version="0") as engine:
                context = services.feature_context
                yield ProcessWorld(
                    engine=engine,
                    provider=provider,
                    store=store,
                    context=context,
                    watcher=ProcessWatcher(context),
                )
