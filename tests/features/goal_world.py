"""A gateway whose agent has a goal: an engine over a store whose clock is set by hand."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clew.agent.models import close_models_on_exit
from clew.commands.runner import CommandRunner
from clew.core.channel_events import load_message
from clew.core.scope import scope_of
from clew.engine.engine import Engine
from clew.features import goals
from clew.features.goals.goals import GOALS, ROUNDS, Goal, GoalRound
from clew.features.goals.service import GoalPursuit
from clew.features.goals.settings import GoalsSettings
from clew.plugin.registry import Features
from clew.runtime import build_services, make_command_registry
from clew.store.checks.registry import find_all
from clew.store.opening import open_store
from clew.testing import Calls, FakeProvider, ScriptedCall
from tests.features.job_world import CHAT, HandClock
from tests.integration.api_server import settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from clew.core.access import ChannelActor
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId
    from clew.core.route import Route
    from clew.plugin.registry import Register
    from clew.store.contract import Store, Tx
    from clew.testing import ProviderRequest, Reply


@dataclass(kw_only=True)
class GoalWorld:
    engine: Engine
    provider: FakeProvider
    store: Store
    clock: HandClock
    runner: CommandRunner
    pursuit: GoalPursuit

    async def say(self, text: str, route: Route = CHAT) -> ConversationId:
        accepted = await self.engine.submit(text, target=route)
        await self.engine.wait_for_input(accepted)
        return accepted.conversation_id

    async def command(
        self, text: str, target: Route | ConversationId = CHAT, who: ChannelActor | None = None
    ) -> str:
        reply = await self.runner.run_command(text, target=target, viewer=scope_of(CHAT), who=who)
        return reply.text

    async def settle(self, state: str) -> Goal:
        """Wait until the last goal is in a state, told of, and nothing is open."""

        async def is_so() -> bool:
            [goal] = (await self.goals())[-1:]
            is_open = await self.store.read(_count_open) > 0
            is_open = is_open or "started" in await self.states()
            return goal.state.value == state and goal.told == 1 and not is_open

        await wait_until(is_so)
        found = await self.store.read(find_all)
        assert not found, found
        return (await self.goals())[-1]

    async def idle(self) -> None:
        """Wait until nothing is open."""

        async def is_so() -> bool:
            return await self.store.read(_count_open) == 0

        await wait_until(is_so)

    async def goals(self) -> list[Goal]:
        return await self.store.read(lambda t: GOALS.fetch_all(t, "ORDER BY created_at, id"))

    async def rounds(self) -> list[GoalRound]:
        return await self.store.read(lambda t: ROUNDS.fetch_all(t, "ORDER BY at, goal, n"))

    async def states(self) -> list[str]:
        return [one.state.value for one in await self.rounds()]

    async def delivered(self) -> list[tuple[str, str]]:
        """Kind and text of each delivery."""
        return await self.store.read(_read_deliveries)

    async def log(self, conversation: ConversationId) -> list[Entry]:
        return list(await self.engine.read_entries(conversation))


def _count_open(t: Tx) -> int:
    return t.fetch_value(
        "SELECT (SELECT count(*) FROM inbox WHERE outcome IS NULL)"
        " + (SELECT count(*) FROM turn WHERE state <> 'done')"
    )


def _read_deliveries(t: Tx) -> list[tuple[str, str]]:
    rows = t.fetch_all("SELECT kind, body FROM delivery ORDER BY n")
    return [(kind, load_message(body).text) for kind, body in rows]


def round_of(request: ProviderRequest) -> int:
    """The round that a request belongs to, by its last user message; 0: a person's turn."""
    said = [one.text for one in request.messages if one.role == "user"]
    text = said[-1] if said else ""
    return int(text.partition("Round ")[2].split()[0]) if "Round " in text else 0


def call_goal(state: str = "done", reason: str = "all is done") -> Calls:
    """The model ends its goal."""
    return Calls((ScriptedCall("goal", {"state": state, "reason": reason}),))


@asynccontextmanager
async def open_goals(
    home: Path,
    url: str,
    answer: Callable[[ProviderRequest], Reply],
    *registers: Register,
    clock: HandClock | None = None,
    tokens: int = 500_000,
    **settings: Any,
) -> AsyncGenerator[GoalWorld]:
    """Open a gateway with these settings of goals."""
    clock = clock or HandClock()
    chosen = GoalsSettings(**settings)
    features = Features()
    features.register("goals", goals.register)
    for number, register in enumerate(registers):
        features.register(f"tested{number}", register)
    with FakeProvider(answer) as provider:
        async with (
            close_models_on_exit(),
            await open_store(url, home=home, clock=clock, features=features.schemas) as store,
        ):
            made = settings_for(home, provider=provider)
            made = replace(
                made,
                agent=replace(made.agent, unattended_tokens=tokens),
                sections={**made.sections, "goals": chosen},
            )
            features.bind_settings(made)
            services = build_services(made, store, features)
            async with Engine(services, role="test", version="0") as engine:
                yield GoalWorld(
                    engine=engine,
                    provider=provider,
                    store=store,
                    clock=clock,
                    runner=CommandRunner(engine, make_command_registry(features)),
                    pursuit=GoalPursuit(services.feature_context, chosen),
                )
