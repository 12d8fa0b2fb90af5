"""A gateway whose agent remembers: an engine, a provider that obeys, and the store."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from clew.agent.models import close_models_on_exit
from clew.commands.runner import CommandRunner
from clew.core.route import Route, local_route
from clew.core.scope import scope_of
from clew.engine.engine import Engine
from clew.features import memory
from clew.features.memory.facts import FACTS, Fact
from clew.plugin.registry import Features
from clew.runtime import build_services, make_command_registry
from clew.store.checks.registry import find_all
from clew.store.feature_migrations import has_feature_tables
from clew.store.opening import open_store
from clew.store.transactions.approvals import list_open_approvals
from clew.store.transactions.conversations import resolve_route
from clew.testing import FakeProvider
from tests.features.delegation_world import do, obey
from tests.integration.api_server import settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from clew.core.approval import Approval
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId
    from clew.features.memory.settings import MemorySettings
    from clew.plugin.registry import Register
    from clew.store.checks.check import Check, Violation
    from clew.store.contract import Store, Tx
    from clew.testing import ProviderRequest, Reply

HOME = local_route("talk")
ANN = Route(platform="telegram", kind="dm", chat="1")


@dataclass(kw_only=True)
class MemoryWorld:
    engine: Engine
    provider: FakeProvider
    store: Store
    runner: CommandRunner
    #: What the model was sent.
    sent: list[ProviderRequest]

    async def say(self, text: str, route: Route = HOME) -> str:
        """Say something; what the model answers."""
        done = await self.engine.wait_for_input(await self.engine.submit(text, target=route))
        assert done.text is not None, done
        return done.text

    async def call(self, name: str, route: Route = HOME, **arguments: Any) -> str:
        """Have the model call a tool; what it was told."""
        return (await self.say(do((name, arguments)), route)).removeprefix("told: ")

    async def command(self, text: str, route: Route = HOME) -> str:
        viewer = scope_of(route)
        return (await self.runner.run_command(text, target=route, viewer=viewer, who=None)).text

    async def conversation(self, route: Route = HOME) -> ConversationId:
        found = await self.store.write(resolve_route, route.key)
        assert found is not None
        return found

    async def log(self, route: Route = HOME) -> Sequence[Entry]:
        return await self.engine.read_entries(await self.conversation(route))

    async def facts(self) -> list[Fact]:
        return await self.store.read(lambda t: FACTS.fetch_all(t, "ORDER BY scope, number"))

    def last_request(self) -> str:
        """All that the model was sent last."""
        return str(self.sent[-1].raw)

    async def question(self, route: Route = HOME) -> Approval:
        """Wait until something is asked, or nothing goes on any more."""
        conversation = await self.conversation(route)

        async def is_asked() -> bool:
            asked = await self.store.read(list_open_approvals, conversation)
            return bool(asked) or await self.store.read(_count_busy) == 0

        await wait_until(is_asked)
        [found] = await self.store.read(list_open_approvals, conversation)
        return found

    async def settle(self) -> None:
        """Wait until nothing is queued or goes on."""

        async def is_done() -> bool:
            return await self.store.read(_count_busy) == 0

        await wait_until(is_done)

    async def check(self) -> None:
        found = await self.store.read(find_wrong)
        assert found == [], found


def find_wrong(t: Tx) -> list[tuple[Check, Violation]]:
    """Run every check of the core, and those of memory where it has its tables."""
    own = memory.CHECKS if has_feature_tables(t, "memory") else ()
    return [*find_all(t), *((check, one) for check in own for one in check.find(t))]


def _count_open(t: Tx) -> int:
    return t.fetch_value("SELECT count(*) FROM inbox WHERE outcome IS NULL")


def _count_busy(t: Tx) -> int:
    return _count_open(t) + t.fetch_value("SELECT count(*) FROM turn WHERE state <> 'done'")


@asynccontextmanager
async def open_memory(
    home: Path,
    url: str,
    answer: Callable[[ProviderRequest], Reply] = obey,
    *,
    settings: MemorySettings | None = None,
    more: Mapping[str, Register] = MappingProxyType({}),
    with_tables: bool = True,
    window: int | None = None,
) -> AsyncGenerator[MemoryWorld]:
    """Open a gateway that remembers, with ``more`` features, and a model with this window."""
    features = Features()
    features.register("memory", memory.register)
    for name, register in more.items():
        features.register(name, register)
    sent: list[ProviderRequest] = []

    def reply(request: ProviderRequest) -> Reply:
        sent.append(request)
        return answer(request)

    with FakeProvider(reply) as provider:
        async with (
            close_models_on_exit(),
            await open_store(
                url, home=home, features=features.schemas if with_tables else ()
            ) as store,
        ):
            made = replace(settings_for(home, provider=provider), loaded_features=features)
            if settings is not None:
                made = replace(made, sections={**made.sections, "memory": settings})
            made = replace(made, model=replace(made.model, context_window=window))
            features.bind_settings(made)
            services = build_services(made, store, features)
            async with Engine(services, role="test", version="0") as engine:
                runner = CommandRunner(engine, make_command_registry(features))
                yield MemoryWorld(
                    engine=engine, provider=provider, store=store, runner=runner, sent=sent
                )
