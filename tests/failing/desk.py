"""A desk to fail at: an engine over a real store whose models are fake providers that misbehave."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic_ai import Agent

from clew import runtime
from clew.agent.compactor import HarnessCompactor
from clew.agent.failover import ModelChain, RetryPolicy
from clew.agent.loop import AgentLoop
from clew.agent.models import ModelSpec, build_model
from clew.clock import SystemClock
from clew.config import load_settings
from clew.core.entry import EntryKind, Role
from clew.core.events import Delta, DeltaKind, EntryAppended, Retracted, TurnFinished
from clew.core.ids import ConversationId
from clew.core.route import local_route
from clew.engine.compaction import CompactionService
from clew.engine.engine import Engine
from clew.store.opening import open_store
from clew.testing import FakeProvider, Text
from tests.contract import invariants
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
    from pathlib import Path

    from clew.agent.compactor import Compactor
    from clew.agent.loop import LoopResult
    from clew.agent.models import Model
    from clew.agent.protocols import Journal, TurnLog
    from clew.clock import Clock
    from clew.core.entry import Entry
    from clew.core.events import ConversationEvent, InputCompleted
    from clew.core.inbox import AcceptResult
    from clew.engine.compaction import CompactionPolicy
    from clew.engine.services import EngineServices
    from clew.store.contract import Store
    from clew.testing import CapturedRequest, Reply, Script

Format: TypeAlias = Literal["chat", "responses", "messages"]
FORMATS: tuple[Format, ...] = ("chat", "responses", "messages")
PREFIX: dict[Format, str] = {
    "chat": "openai-chat",
    "responses": "openai",
    "messages": "anthropic",
}
#: Nobody waits for real in these tests.
HASTE = RetryPolicy(first_wait=0.001, max_wait=0.02)
#: Long enough for a slow machine, and so short that a test waits it out.
_PATIENT, _HASTY = timedelta(seconds=20), timedelta(seconds=0.15)
_PAUSE = 0.002


def is_stand_in(entry: Entry) -> bool:
    """Return whether an entry replaces a missing answer, for the model alone."""
    return entry.role is Role.ASSISTANT and not entry.text and not entry.calls


@dataclass(frozen=True, kw_only=True)
class Told:
    """All that came of one message."""

    ended: InputCompleted
    #: Events that a subscribed client received while the turn ran.
    events: Sequence[ConversationEvent]
    #: Of the turn.
    entries: Sequence[Entry]
    #: The requests that the providers got meanwhile, by provider.
    by_provider: Sequence[Sequence[CapturedRequest]]

    @property
    def requests(self) -> list[CapturedRequest]:
        """The requests that the providers got meanwhile."""
        return [request for requests in self.by_provider for request in requests]

    @property
    def asked(self) -> list[int]:
        """Return the number of requests to each provider."""
        return [len(requests) for requests in self.by_provider]

    @property
    def text(self) -> str:
        return self.ended.text

    @property
    def outcome(self) -> str:
        assert self.ended.turn is not None
        assert self.ended.turn.outcome is not None
        return self.ended.turn.outcome.value

    @property
    def code(self) -> str | None:
        assert self.ended.turn is not None
        return self.ended.turn.error_code

    @property
    def attempts(self) -> list[str]:
        """The requests that failed, as the log tells them."""
        return [entry.text for entry in self.entries if entry.kind is EntryKind.ATTEMPT]

    @property
    def notices(self) -> list[str]:
        return [entry.text for entry in self.entries if entry.kind is EntryKind.EVENT]

    @property
    def context(self) -> list[str]:
        """Return the later view of the turn, for people and the model."""
        messages = (entry for entry in self.entries if entry.kind is EntryKind.MESSAGE)
        return [entry.text for entry in messages if not is_stand_in(entry)]

    @property
    def screens(self) -> list[tuple[str, str]]:
        return screens(self.events)

    @property
    def shown(self) -> list[str]:
        """All pieces that were ever shown."""
        return [event.text for event in self.events if isinstance(event, Delta)]


def screens(events: Iterable[ConversationEvent]) -> list[tuple[str, str]]:
    """For each response: the pieces that were shown and not taken back, and its stored text."""
    found: list[tuple[str, str]] = []
    pieces = ""
    for event in events:
        match event:
            case Delta(kind=DeltaKind.TEXT, text=text):
                pieces += text
            case Retracted():
                pieces = ""
            case EntryAppended(entry=entry) if entry.role is Role.ASSISTANT:
                found.append((pieces, entry.text))
                pieces = ""
            case _:
                pass
    return [*found, (pieces, "")] if pieces else found


@dataclass(kw_only=True)
class Desk:
    """One process, and its providers: the first model's, then those of its stand-ins."""

    engine: Engine
    means: EngineServices
    store: Store
    providers: Sequence[FakeProvider]
    names: int = 0
    ids: dict[str, ConversationId] = field(default_factory=dict[str, ConversationId])

    @property
    def provider(self) -> FakeProvider:
        return self.providers[0]

    def play(self, *scripts: Script) -> None:
        """Set the answers of the providers from now on."""
        for provider, script in zip(self.providers, scripts, strict=True):
            provider.script = script

    async def begin(self, text: str = "hello", answer: str = "hello to you") -> str:
        """A new conversation that has had one good turn; its name."""
        self.names += 1
        name = f"talk{self.names}"
        self.play(*[always(Text(answer)) for _ in self.providers])
        told = await self.say(name, text)
        assert told.text == answer
        return name

    def hasten(self, runs: int, *, silence: float = 0.04) -> None:
        """Let the next runs of the loop give up on a silent or endless provider at once."""
        loop = self.means.loop
        assert isinstance(loop, HastyLoop)
        loop.hasty, loop.hasty_silence = runs, timedelta(seconds=silence)

    async def submit(self, name: str, text: str) -> AcceptResult:
        """Hand a message in and do not wait."""
        accepted = await self.engine.submit(text, target=local_route(name))
        self.ids[name] = accepted.conversation_id
        return accepted

    async def end(self, accepted: AcceptResult) -> InputCompleted:
        """Return the outcome of an input."""
        return await self._end(accepted)

    async def until(self, true: Callable[[], object]) -> None:
        await wait_until(true, pause=_PAUSE)

    async def say(self, name: str, text: str, *, stream: bool = False) -> Told:
        """Send a message and wait for its end; ``stream`` if a client is to follow."""
        before = [len(provider.requests) for provider in self.providers]
        target = local_route(name)
        if not stream:
            accepted = await self.submit(name, text)
            return await self.told_of(accepted, await self._end(accepted), [], before)
        events: list[ConversationEvent] = []
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(self._follow(self.ids[name], events))
            await wait_until(
                lambda: self.means.event_bus.has_live_subscriber(self.ids[name]), "a follower"
            )
            accepted = await self.engine.submit(text, target=target)
            await following
        return await self.told_of(accepted, await self._end(accepted), events, before)

    async def _follow(self, conversation: ConversationId, events: list[ConversationEvent]) -> None:
        said = await self.engine.read_entries(conversation, limit=1000)
        async with aclosing(
            self.engine.stream_events(conversation, after=said[-1].seq)
        ) as following:
            async for event in following:
                events.append(event)
                if isinstance(event, TurnFinished):
                    return

    async def _end(self, accepted: AcceptResult) -> InputCompleted:
        ended = await wait_until(
            lambda: self.engine.get_input_result(accepted.inbox_id),
            f"the end of {accepted.inbox_id}",
        )
        assert ended is not None
        return ended

    async def told_of(
        self,
        accepted: AcceptResult,
        ended: InputCompleted,
        events: list[ConversationEvent],
        before: list[int],
    ) -> Told:
        """All that came of a message that was handed in after so many requests."""
        turn = ended.turn
        assert turn is not None
        entries = await self.engine.read_entries(
            accepted.conversation_id, after=turn.first_seq - 1, limit=1000
        )
        requests = [
            provider.wait_until_settled()[count:]
            for provider, count in zip(self.providers, before, strict=True)
        ]
        self.hasten(0)
        own = [entry for entry in entries if entry.turn_id == turn.id]
        return Told(ended=ended, events=events, entries=own, by_provider=requests)

    async def check(self) -> list[str]:
        """Every violation of an invariant in the store."""
        return await self.store.read(invariants.check)


class HastyLoop(AgentLoop):
    """Gives up at once in as many runs as it was told, and else waits as long as it takes."""

    hasty = 0
    hasty_silence = _PATIENT

    async def run(
        self, log: TurnLog, journal: Journal, model: Model, *, stream: bool
    ) -> LoopResult:
        hasty = self.hasty > 0
        self.silence = self.hasty_silence if hasty else _PATIENT
        self.longest_response = _HASTY if hasty else _PATIENT
        self.hasty -= 1
        return await super().run(log, journal, model, stream=stream)


@asynccontextmanager
async def open_desk(  # noqa: PLR0913  (a test sets one or two of them)
    home: Path,
    *formats: Format,
    patience: RetryPolicy = HASTE,
    agent: Agent[Any, Any] | None = None,
    policy: CompactionPolicy | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    model_name: str = "fake-model",
    max_steps: int = 50,
    clock: Clock | None = None,
    compactor: Compactor | None = None,
    apart: bool = False,
) -> AsyncGenerator[Desk]:
    """
    One provider and one model per format; a store in ``home``.

    The first model writes summaries too; with ``apart`` the last one does, and nothing else.
    """
    async with AsyncExitStack() as stack:
        providers = [stack.enter_context(FakeProvider()) for _ in formats]
        models = [
            model_for(form, provider, model_name)
            for form, provider in zip(formats, providers, strict=True)
        ]
        for model in models:
            # After the engine, whose turns may still be asking.
            stack.push_async_callback(close, model)
        store = await stack.enter_async_context(
            await open_store(f"sqlite:///{home}/clew.db", home=home, clock=clock)
        )
        settings = load_settings(home=home, flags={"model.name": "offline"}, environ={})
        means = runtime.build_services(settings, store)
        compactions = means.compaction
        means = replace(
            means,
            loop=HastyLoop(agent or Agent(), max_steps=max_steps),
            models=ModelChain(models[:-1] if apart else models, patience, monotonic),
            compaction=CompactionService(
                store,
                means.ids,
                clock or SystemClock(),
                compactor=compactor or HarnessCompactor(),
                model=models[-1 if apart else 0],
                apart=apart,
                standby=models[0] if apart else None,
                policy=policy or compactions.policy,
            ),
        )
        engine = await stack.enter_async_context(Engine(means, role="test", version="0"))
        yield Desk(engine=engine, means=means, store=store, providers=providers)


async def close(model: Model) -> None:
    """Close the connections of a model that ``model_for`` made."""
    client: Any = getattr(model, "client")  # noqa: B009  (each kind of model has one of its own)
    await client.close()


def model_for(form: Format, provider: FakeProvider, name: str = "fake-model") -> Model:
    """The product's model of a format, at a fake provider."""
    url = provider.anthropic_url if form == "messages" else provider.openai_url
    return build_model(ModelSpec(name=f"{PREFIX[form]}:{name}", base_url=url, api_key="x"))


def always(reply: Reply) -> Script:
    """The same answer to everything."""
    return lambda _: reply
