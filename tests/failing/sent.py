"""
Sent equals stored, in all three formats: each captured request is among those the store gives.

Every stored context, up to each request in it, goes through the product's own loop and model to a
provider of this module; what a provider got must be one of the bodies that come of it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from clew.agent.messages import ModelRequest, ModelResponse
from clew.agent.ports import LoopContext
from clew.testing import FakeProvider, Text
from tests.failing.desk import close, model_for
from tests.killing.sent import stored_contexts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.agent.loop import Loop
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.agent.ports import Asked, Execute, ToolRequest, ToolResult
    from clew.core.events import DeltaKind
    from clew.core.ids import ConversationId
    from clew.store.contract import Store
    from clew.testing import Captured
    from tests.failing.desk import Desk, Format

#: How the request for a summary begins: it is made from the log, not from a context.
_SUMMARY = "You keep the memory of a conversation"


async def unexplained(
    desk: Desk, conversation: ConversationId, form: Format, requests: Sequence[Captured]
) -> list[str]:
    """The requests for a conversation that do not follow from what is stored of it."""
    asked = [request for request in requests if _SUMMARY not in request.body.decode()]
    found: list[str] = []
    for stream in (False, True):
        sent = [request for request in asked if request.stream is stream]
        if not sent:
            continue
        bodies = await _bodies(desk.store, desk.means.loop, conversation, form, stream=stream)
        found += [
            f"request {request.number} does not follow from the store: {request.body.decode()}"
            for request in sent
            if _canonical(request) not in bodies
        ]
    return found


async def _bodies(
    store: Store, loop: Loop, conversation: ConversationId, form: Format, *, stream: bool
) -> set[str]:
    """Every body that the store gives."""
    with FakeProvider(lambda _: Text("rebuilt")) as provider:
        model = model_for(form, provider)
        logs = [
            _Log(context.messages[:end], context.instructions)
            for context in await store.read(stored_contexts, conversation)
            for end, message in enumerate(context.messages, 1)
            if isinstance(message, ModelRequest)
        ]
        for log in logs:
            await _run(loop, log, model, stream=stream)
        await close(model)
        return {_canonical(request) for request in provider.requests}


async def _run(loop: Loop, log: _Log, model: Model, *, stream: bool) -> None:
    # What comes of the answer is of no interest.
    with suppress(_Enough):
        await loop.run(log, _Journal(), model, stream=stream)


def _canonical(request: Captured) -> str:
    return json.dumps(request.json, sort_keys=True)


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
