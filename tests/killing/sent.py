"""
Sent equals stored: each request that the provider got is made again from the store, and compared.

The stored context, up to the entry that the request ended with, goes through the product's own loop
and model to a provider of this module, in the same format. Both bodies must be the same JSON.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from clew.agent import messages as stored_form
from clew.agent.messages import ModelRequest, ModelResponse
from clew.agent.ports import LoopContext
from clew.store.transactions import context as contexts
from clew.store.transactions import sessions
from clew.testing.provider import FakeProvider, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clew.agent.loop import Loop
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.agent.ports import Asked, Execute, ToolRequest, ToolResult
    from clew.core.events import DeltaKind
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx
    from clew.testing.provider import Captured


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """One session's whole context: its base and what was appended in it."""

    instructions: str | None
    messages: tuple[ModelMessage, ...]


def stored_contexts(t: Tx, conversation: ConversationId) -> list[Stored]:
    """The context of each session of a conversation, oldest first."""
    return [
        Stored(
            instructions=session.instructions,
            messages=tuple(
                stored_form.load(message.message)
                for message in contexts.materialised(
                    t, conversation, contexts.session_base(t, session.id)
                )
            ),
        )
        for session in sessions.lineage(t, conversation)
    ]


def rebuilding_provider() -> FakeProvider:
    """What the requests that are made again are sent to."""
    return FakeProvider(lambda _: Text("rebuilt"), strict=False)


class Rebuilder:
    """Makes requests from contexts."""

    def __init__(self, loop: Loop, model: Model, provider: FakeProvider) -> None:
        """``model`` is the one that was used, but served by ``provider``."""
        self._loop, self._model, self._provider = loop, model, provider

    async def difference(self, captured: Captured, stored: Sequence[Stored]) -> str | None:
        """``None`` if the request follows from one of the contexts; else what does not."""
        assert captured.json is not None
        found = "nothing stored has as many messages"
        for context, length in _candidates(captured.json, stored):
            body = await self._body(context, length, stream=captured.stream)
            if body == captured.json:
                return None
            found = _first_difference(captured.json, body)
        return f"request {captured.number} does not follow from the store: {found}"

    async def _body(self, context: Stored, length: int, *, stream: bool) -> Mapping[str, Any]:
        log = _Log(context.messages[:length], context.instructions)
        # What comes of the answer is of no interest.
        with suppress(_Enough):
            await self._loop.run(log, _Journal(), self._model, stream=stream)
        made = self._provider.requests[-1]
        assert made.json is not None
        return made.json


async def differences(
    rebuilder: Rebuilder, captured: Iterable[tuple[Captured, Sequence[Stored]]]
) -> list[str]:
    """What is wrong with requests, each given with the contexts of its conversation."""
    found = [await rebuilder.difference(request, stored) for request, stored in captured]
    return [sentence for sentence in found if sentence is not None]


def _candidates(body: Mapping[str, Any], stored: Sequence[Stored]) -> Iterator[tuple[Stored, int]]:
    """The contexts, and how much of each, that give as many messages as the body has."""
    wanted = len(body["messages"])
    for context in reversed(stored):
        count = int(context.instructions is not None)
        for index, message in enumerate(context.messages):
            count += _size(message)
            if count == wanted and isinstance(message, ModelRequest):
                yield context, index + 1
        if context.instructions is None:
            yield from _candidates_with_instructions(wanted, context)


def _candidates_with_instructions(wanted: int, context: Stored) -> Iterator[tuple[Stored, int]]:
    # They are stored with the first response: a session that never had one renders them.
    count = 1
    for index, message in enumerate(context.messages):
        count += _size(message)
        if count == wanted and isinstance(message, ModelRequest):
            yield context, index + 1


def _size(message: ModelMessage) -> int:
    """Messages on the wire that a stored one becomes."""
    if isinstance(message, ModelResponse):
        return int(any(part.part_kind in ("text", "tool-call") for part in message.parts))
    return len(message.parts)


def _first_difference(sent: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    for name in sorted(sent.keys() | made.keys()):
        if sent.get(name) == made.get(name):
            continue
        if name != "messages":
            return f"{name}: sent {sent.get(name)!r:.200}, stored {made.get(name)!r:.200}"
        for index, (ours, theirs) in enumerate(zip(sent[name], made[name], strict=False)):
            if ours != theirs:
                return f"message {index}: sent {ours!r:.200}, stored {theirs!r:.200}"
        return f"{len(sent[name])} messages sent, {len(made[name])} stored"
    return "nothing"


class _Enough(Exception):
    """The request was made; the loop need not go on."""


class _Log:
    """A turn's log that holds a context and stores nothing."""

    def __init__(self, messages: Sequence[ModelMessage], instructions: str | None) -> None:
        self._context = LoopContext(messages=messages, instructions=instructions, steps=0)

    async def context(self) -> LoopContext:
        return self._context

    def asked(self, asked: Asked) -> None:
        pass

    async def store_response(self, response: ModelResponse, instructions: str | None) -> NoReturn:
        raise _Enough

    async def store_request(self, request: ModelRequest) -> NoReturn:
        raise _Enough

    async def steered(self) -> Sequence[ModelMessage]:
        return ()

    async def fit(self) -> LoopContext | None:
        return None

    async def store_usage(self, response: ModelResponse) -> None:
        pass

    async def store_attempt(self, text: str) -> None:
        pass

    def say(self, kind: DeltaKind, text: str) -> None:
        pass

    def retract(self, reason: str) -> None:
        pass


class _Journal:
    """A journal of a run in which no tool is called."""

    suspended = False

    async def call(self, request: ToolRequest, execute: Execute) -> ToolResult | None:
        raise _Enough
