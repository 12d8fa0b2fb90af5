"""A world: an engine over a real store, with a scripted model and tools; and how to look at it."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from inspect import iscoroutine
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent

from clew import runtime
from clew.agent.failover import ModelChain, RetryPolicy
from clew.agent.loop import AgentLoop
from clew.clock import SystemClock
from clew.config import load_settings
from clew.core.double_text import DoubleText
from clew.core.ids import ConversationId
from clew.core.route import Route, local_route
from clew.core.turn import TurnState
from clew.engine.compaction import CompactionService
from clew.engine.engine import Engine
from clew.store.opening import open_store
from clew.store.transactions import entries, inbox
from tests.contract import invariants
from tests.line import strict
from tests.line.clock import ShiftedClock
from tests.line.compacting import Compacting
from tests.line.model import Scripted
from tests.line.points import PointedStore, Points
from tests.line.tools import Tools
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic_ai import Tool
    from pydantic_ai.capabilities import AbstractCapability

    from clew.core.approval import Approval
    from clew.core.entry import Entry
    from clew.core.events import InputCompleted
    from clew.core.inbox import AcceptResult, InboxItem
    from clew.core.turn import Turn
    from clew.engine.services import EngineServices
    from clew.store.contract import Tx

#: Between two looks at the store.
_PAUSE = 0.003


@dataclass(frozen=True, kw_only=True)
class World:
    """One process: what a front sees of it, and what only a test sees."""

    engine: Engine
    means: EngineServices
    store: PointedStore
    points: Points
    model: Scripted
    tools: Tools
    compacting: Compacting
    clock: ShiftedClock
    #: Set when the world is over: nothing may hang for ever.
    over: asyncio.Event

    async def say(
        self,
        text: str,
        rule: DoubleText = DoubleText.QUEUE,
        *,
        to: Route | ConversationId | str = "talk",
    ) -> AcceptResult:
        """Accept a message; a NAME is a local route."""
        target = to if isinstance(to, Route) or to.startswith("cnv_") else local_route(to)
        return await self.engine.submit(
            self.engine.new_input(text, double_text=rule), target=_target(target)
        )

    def target(self, name: str) -> Route:
        """Return the local route of a NAME."""
        return local_route(name)

    async def end(self, accepted: AcceptResult) -> InputCompleted:
        """Return the outcome of an input, read from the store, so that nothing is followed."""
        ended = await wait_until(
            lambda: self.engine.get_input_result(accepted.inbox_id),
            f"the end of {accepted.inbox_id}",
            pause=_PAUSE,
        )
        assert ended is not None
        return ended

    async def item(self, accepted: AcceptResult) -> InboxItem:
        return await self.store.inner.read(inbox.get_item, accepted.inbox_id)

    async def log(self, conversation: ConversationId, *, after: int = 0) -> Sequence[Entry]:
        return await self.store.inner.read(
            entries.read_entries_after, conversation, after=after, limit=1000
        )

    async def shape(self, conversation: ConversationId, *, after: int = 0) -> list[str]:
        return strict.shape(await self.log(conversation, after=after))

    async def waiting(self, conversation: ConversationId) -> Turn:
        """The turn, once it waits for a person."""

        async def waits() -> Turn | None:
            turn = await self.engine.get_unfinished_turn(conversation)
            return turn if turn is not None and turn.state is TurnState.WAITING else None

        turn = await wait_until(waits, f"a question in {conversation}", pause=_PAUSE)
        assert turn is not None
        return turn

    async def question(self, conversation: ConversationId) -> Approval:
        """The one open question, once the turn waits for it."""
        await self.waiting(conversation)
        (found,) = await self.engine.list_approvals(conversation)
        return found

    async def idle(self, conversation: ConversationId) -> None:
        """Wait until there is nothing to do in a conversation."""

        async def done() -> bool:
            # In this order: what leaves the line becomes a turn.
            waiting = await self.store.inner.read(inbox.list_open_items, conversation)
            return not waiting and await self.engine.get_unfinished_turn(conversation) is None

        await self.until(done)

    async def until(self, true: Callable[[], Awaitable[bool]]) -> None:
        await wait_until(true, pause=_PAUSE)

    def left_over(self) -> list[str]:
        """Tasks of the library that outlive their run."""
        coroutines = [task.get_coro() for task in asyncio.all_tasks()]
        codes = [coroutine.cr_code for coroutine in coroutines if iscoroutine(coroutine)]
        return [code.co_qualname for code in codes if "pydantic_ai" in code.co_filename]

    async def check(self) -> list[str]:
        """Every violation of an invariant in the store, and of the provider's rules on the wire."""
        wire = [text for sent in self.model.sent for text in strict.complaints(strict.bits(sent))]
        found = await self.store.inner.read(invariants.check)
        return found + await self.store.inner.read(_find_unexplained_calls) + wire


def _find_unexplained_calls(t: Tx) -> list[str]:
    """Return the calls that ran, or did not, without a reason."""
    return t.fetch_column("SELECT 'no reason: ' || call_id FROM journal WHERE reason IS NULL")


def _target(target: Route | str) -> Route | ConversationId:
    return target if isinstance(target, Route) else ConversationId(target)


@asynccontextmanager
async def open_world(  # noqa: PLR0913  (each is what some test varies)
    url: str,
    home: Path,
    *,
    tools: Callable[[Tools], list[Tool[Any]]] = Tools.make,
    capabilities: Sequence[AbstractCapability[Any]] = (),
    clock: ShiftedClock | None = None,
    longest_call: float = 600,
    max_steps: int = 50,
    turns_at_once: int = 16,
    kind: type[PointedStore] = PointedStore,
    flags: Mapping[str, object] = MappingProxyType({}),
) -> AsyncGenerator[World]:
    """Start an engine over the store; leaving the block lets its turns go, as a drain does."""
    clock = clock or ShiftedClock()
    points = Points()
    model, made, over = Scripted(points), Tools(points), asyncio.Event()
    compacting = Compacting(points)
    async with kind(await open_store(url, home=home, clock=clock), points) as store:
        agent = Agent(tools=tools(made), retries=3, capabilities=capabilities)
        means = _means(home, store, model, agent, longest_call, max_steps, flags)
        compactions = _compactions(means, compacting, model)
        means = replace(means, compaction=compactions, turns_at_once=turns_at_once)
        try:
            async with Engine(means, role="test", version="0") as engine:
                yield World(
                    engine=engine,
                    means=means,
                    store=store,
                    points=points,
                    model=model,
                    tools=made,
                    compacting=compacting,
                    clock=clock,
                    over=over,
                )
        finally:
            over.set()


def _means(
    home: Path,
    store: PointedStore,
    model: Scripted,
    agent: Agent,
    longest_call: float,
    max_steps: int,
    flags: Mapping[str, object],
) -> EngineServices:
    base = {"model.name": "openai-chat:none", "model.base_url": "http://127.0.0.1:9/v1"}
    settings = load_settings(home=home, flags={**base, **flags}, environ={})
    return replace(
        runtime.build_services(settings, store),
        loop=AgentLoop(agent, max_steps=max_steps, longest_call=timedelta(seconds=longest_call)),
        models=ModelChain([model.model], RetryPolicy(attempts=1), time.monotonic),
    )


def _compactions(
    means: EngineServices, compacting: Compacting, model: Scripted
) -> CompactionService:
    made = CompactionService(
        means.store,
        means.ids,
        SystemClock(),
        compactor=compacting,
        model=model.model,
        policy=means.compaction.policy,
    )
    compacting.bind(made)
    return made
