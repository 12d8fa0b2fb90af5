"""A gateway whose agents have tasks done by others: what each model does is in its message."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from clew.agent.models import close_models_on_exit
from clew.core.channel_events import load_message
from clew.core.route import Route
from clew.engine.engine import Engine
from clew.features import delegation
from clew.features.delegation.children import CHILDREN, Child
from clew.features.delegation.service import settle_left_children
from clew.plugin.registry import Features
from clew.runtime import build_services
from clew.store.checks.registry import find_all
from clew.store.opening import open_store
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.integration.api_server import settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from clew.config.settings import Settings
    from clew.core.entry import Entry
    from clew.core.events import InputCompleted
    from clew.core.ids import ConversationId
    from clew.features.delegation.settings import AgentKind, DelegationSettings
    from clew.plugin.registry import Register
    from clew.store.contract import Store, Tx
    from clew.testing import ProviderRequest, Reply

CHAT = Route(platform="telegram", kind="dm", chat="42")
_DO = "DO "


def do(*calls: tuple[str, dict[str, Any]]) -> str:
    """Return a message whose reader makes these calls, and then says what they returned."""
    return f"{_DO}{json.dumps(calls)}"


def delegate(task: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("delegate", {"task": task, **more})


def obey(request: ProviderRequest) -> Reply:
    """Do what the last message says: calls, or say its first line again."""
    last = request.messages[-1]
    if last.role == "tool" or last.results:
        return Text("told: " + " | ".join(result.text for result in request.new_results))
    for line in last.text.splitlines():
        if line.startswith(_DO):
            calls = json.loads(line.removeprefix(_DO))
            return Calls(tuple(ScriptedCall(name, args) for name, args in calls))
    told = [line for line in last.text.splitlines() if line and not line.startswith("[")]
    return Text(f"done: {told[0] if told else ''}")


@dataclass(kw_only=True)
class DelegationWorld:
    """Everything that a test of tasks needs."""

    engine: Engine
    provider: FakeProvider
    store: Store
    settings: Settings

    async def say(self, text: str, route: Route = CHAT) -> InputCompleted:
        """Say something, and return what came of it."""
        return await self.engine.wait_for_input(await self.engine.submit(text, target=route))

    async def children(self) -> list[Child]:
        return await self.store.read(
            lambda t: CHILDREN.fetch_all(t, "ORDER BY created_at, depth, conversation_id")
        )

    async def child(self) -> Child:
        [found] = await self.children()
        return found

    async def settle(self) -> None:
        """Wait until nothing goes on, and check the store."""

        async def is_done() -> bool:
            await settle_left_children(self.engine.feature_context)
            return await self.store.read(_count_open) == 0

        await wait_until(is_done)
        assert await self.store.read(find_all) == []

    async def log(self, conversation: ConversationId) -> list[Entry]:
        return list(await self.engine.read_entries(conversation))

    async def delivered(self) -> list[tuple[str, str, str]]:
        """Route, kind and text of each delivery."""
        return await self.store.read(_read_deliveries)


def _count_open(t: Tx) -> int:
    return t.fetch_value(
        "SELECT (SELECT count(*) FROM inbox WHERE outcome IS NULL)"
        " + (SELECT count(*) FROM turn WHERE state = 'running')"
        " + (SELECT count(*) FROM delegation_child WHERE state = 'running')"
    )


def _read_deliveries(t: Tx) -> list[tuple[str, str, str]]:
    rows = t.fetch_all("SELECT route, kind, body FROM delivery ORDER BY n")
    return [(route, kind, load_message(body).text) for route, kind, body in rows]


@asynccontextmanager
async def open_delegation(
    home: Path,
    url: str,
    answer: Callable[[ProviderRequest], Reply] = obey,
    *registers: Register,
    settings: DelegationSettings | None = None,
    turns_at_once: int | None = None,
    kinds: Mapping[str, AgentKind] = MappingProxyType({}),
) -> AsyncGenerator[DelegationWorld]:
    """Open a gateway whose agents may give tasks to others."""
    features = Features()
    features.register("delegation", delegation.register)
    for number, register in enumerate(registers):
        own = register.__module__.startswith("clew.features.")
        name = register.__module__.rpartition(".")[2] if own else f"tested{number}"
        features.register(name, register)
    with FakeProvider(answer) as provider:
        async with (
            close_models_on_exit(),
            await open_store(url, home=home, features=features.schemas) as store,
        ):
            made = replace(settings_for(home, provider=provider), tables={"agents": kinds})
            if turns_at_once is not None:
                made = replace(made, agent=replace(made.agent, turns_at_once=turns_at_once))
            if settings is not None:
                made = replace(made, sections={**made.sections, "delegation": settings})
            features.bind_settings(made)
            async with Engine(build_services(made, store, features), role="test", version="0") as e:
                yield DelegationWorld(engine=e, provider=provider, store=store, settings=made)
