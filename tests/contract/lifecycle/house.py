"""A house: an engine over a real store, with a model, a summariser and plugins that take notes."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent

from clew import runtime
from clew.agent.failover import ModelChain, RetryPolicy
from clew.agent.loop import AgentLoop
from clew.agent.side_requests import request_side_answer
from clew.clock import SystemClock
from clew.config import load_settings
from clew.core.ids import ConversationId, SessionId, new_session_id
from clew.engine.compaction import CompactionPolicy, CompactionService
from clew.engine.engine import Engine
from clew.engine.hook_dispatch import HookDispatcher
from clew.engine.titles import TitleService
from clew.hooks.manager import PluginManager
from clew.plugin import FeatureContext
from clew.store.opening import open_store
from clew.store.transactions import conversations, inbox, sessions
from tests.contract import invariants
from tests.contract.lifecycle.counting import CountedStore
from tests.contract.lifecycle.doubles import NoteTaker, Provider, Summariser
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from pydantic_ai.models import Model

    from clew.clock import Clock
    from clew.config import Settings
    from clew.core.events import InputCompleted
    from clew.core.inbox import AcceptResult
    from clew.core.reset_policy import ResetPolicy
    from clew.core.route import Route
    from clew.core.session import Session
    from clew.core.side_answer import SideAnswer
    from clew.engine.after_turn import AfterTurnQueue
    from clew.engine.compression_lock import CompressionLock
    from clew.engine.services import EngineServices
    from clew.store.contract import Store


def _make_after_turn_queue(
    settings: Settings, means: EngineServices, requested: TitleService, title_model: Model | None
) -> AfterTurnQueue:
    """As in production, with a model for titles if there is one."""

    async def ask_model(
        model: str,
        prompt: str,
        *,
        setting: str,
        max_tokens: int,
        seconds: float,
        picture: bytes | None = None,
    ) -> SideAnswer:
        assert title_model is not None
        assert picture is None
        return await request_side_answer(
            title_model, prompt, max_tokens=max_tokens, seconds=seconds
        )

    name = None if title_model is None else "test:titles"
    session = replace(settings.session, title_model=name)
    context = FeatureContext(
        settings=replace(settings, session=session),
        store=means.store,
        ids=means.ids,
        ask_model=ask_model,
    )
    return runtime.make_after_turn_queue(requested, means.features, context)


class Proposals:
    """Session ids as a contract names them, in order; then ids as they are made in production."""

    def __init__(self, *ids: str) -> None:
        self._left = list(ids)

    def __call__(self, millis: int, /) -> SessionId:
        return SessionId(self._left.pop(0)) if self._left else new_session_id(millis)


@dataclass(frozen=True, kw_only=True)
class House:
    """One process: what a front sees of it, and what only a test sees."""

    engine: Engine
    means: EngineServices
    store: CountedStore
    provider: Provider
    summariser: Summariser
    notes: NoteTaker

    async def say(self, text: str, *, to: Route | ConversationId) -> InputCompleted:
        """Hand in a message and wait for what comes of it."""
        return await self.end(await self.engine.submit(text, target=to))

    async def end(self, accepted: AcceptResult) -> InputCompleted:
        """Return the result of an input, read from the store so that nothing is streamed."""
        ended = await wait_until(
            lambda: self.engine.get_input_result(accepted.inbox_id),
            f"the end of {accepted.inbox_id}",
        )
        assert ended is not None
        return ended

    async def hold(self, *, to: Route | ConversationId) -> AcceptResult:
        """Hand in a message, and keep the model from answering it: a running turn."""
        self.provider.gate = asyncio.Event()
        self.provider.asked.clear()
        accepted = await self.engine.submit("hold the line", target=to)
        await self.provider.asked.wait()
        return accepted

    def let_go(self) -> None:
        """Let the model answer."""
        assert self.provider.gate is not None
        self.provider.gate.set()

    async def head(self, name: str) -> Session:
        """The current session of a route, a conversation or any of its sessions."""
        conversation = await self.engine.resolve_name(name)
        return await self.store.read(sessions.get_head, conversation)

    async def lineage(self, name: str) -> list[tuple[str, str | None]]:
        """Every session of a conversation with its end reason, oldest first."""
        conversation = await self.engine.resolve_name(name)
        found = await self.store.read(sessions.list_sessions, conversation)
        return [(one.id, one.end_reason) for one in found]

    async def open(self, route: Route) -> ConversationId:
        """The conversation of a route, opened if need be."""
        return await self.store.write(
            conversations.open_route,
            route,
            new_conversation=self.means.ids.new_conversation_id(),
            session_ids=self.means.session_ids,
        )

    async def quiet(self, conversation: ConversationId) -> None:
        """Wait until the line is empty, plugins were told what happened, and titles given."""

        async def rests() -> bool:
            return not await self._busy(conversation)

        await wait_until(rests, f"{conversation} rests")
        await self.engine.wait_until_idle()

    async def _busy(self, conversation: ConversationId) -> bool:
        if await self.store.read(inbox.list_open_items, conversation):
            return True
        return await self.engine.get_unfinished_turn(conversation) is not None


@asynccontextmanager
async def open_house(  # noqa: PLR0913  (a test sets one or two of them)
    url: str,
    home: Path,
    *,
    session_ids: Sequence[str] = (),
    clock: Clock | None = None,
    reset: ResetPolicy | None = None,
    window: int | None = None,
    plugins: Sequence[object] = (),
    tools: Sequence[Callable[..., Any]] = (),
    lock: CompressionLock | None = None,
    title_model: Model | None = None,
    around: Callable[[Store], Store] | None = None,
    provider: Provider | None = None,
    model: Model | None = None,
    summariser: Summariser | None = None,
    own_only: bool = False,
) -> AsyncGenerator[House]:
    """Start an engine over the store; leaving the block lets its turns go, as a drain does."""
    provider, summariser = provider or Provider(), summariser or Summariser()
    notes = NoteTaker()
    opened = await open_store(url, home=home, clock=clock)
    async with CountedStore(opened) as store:
        settings = load_settings(home=home, flags={"model.name": "offline"}, environ={})
        means = runtime.build_services(settings, around(store) if around else store)
        ids = Proposals(*session_ids)
        told = PluginManager()
        for number, plugin in enumerate([notes, *plugins]):
            told.register_plugin(plugin, f"plugin{number}")
        titles = TitleService(means.store, means.ids, session_ids=ids)
        means = replace(
            means,
            loop=AgentLoop(Agent(tools=list(tools), retries=1), max_steps=20),
            models=ModelChain([model or provider.model], RetryPolicy(attempts=1), time.monotonic),
            compaction=CompactionService(
                means.store,
                means.ids,
                clock or SystemClock(),
                compactor=summariser,
                model=provider.model,
                policy=CompactionPolicy(window=window),
                lock=lock,
                session_ids=ids,
            ),
            hooks=HookDispatcher(means.store, told),
            titles=titles,
            after_turn=_make_after_turn_queue(settings, means, titles, title_model),
            reset_policy=reset or means.reset_policy,
            session_ids=ids,
        )
        async with Engine(means, role="test", version="0", own_only=own_only) as engine:
            yield House(
                engine=engine,
                means=means,
                store=store,
                provider=provider,
                summariser=summariser,
                notes=notes,
            )
        assert await store.read(invariants.check) == []
