"""Replies resolved to texts, calls with ids, a finish reason and token usage."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from clew.record import Record, replace
from clew.testing.provider.replies import (
    Calls,
    CompleteReply,
    EmptyChoices,
    EmptyText,
    LengthStop,
    MalformedArguments,
    ReplyUsage,
    Text,
    UnknownTool,
)

if TYPE_CHECKING:
    from clew.testing.provider.request import ProviderRequest

FinishReason: TypeAlias = Literal["stop", "length", "tools"]
#: A fixed time, so that equal scripts give equal bytes.
CREATED_AT = 1_700_000_000


class SseFrame(NamedTuple):
    """A piece of a stream; ``content`` pieces are the chunks that scripts count."""

    data: str
    content: bool = False


class ResolvedCall(Record):
    """A tool call to send; its arguments may be invalid JSON."""

    id: str
    name: str
    arguments: str


class ResolvedReply(Record):
    """A reply with everything that a format has to express."""

    number: int
    model: str
    usage: ReplyUsage
    text: str = ""
    calls: tuple[ResolvedCall, ...] = ()
    thinking: str | None = None
    #: ``None``: the reply has not ended.
    finish: FinishReason | None = "stop"
    chunks: int = 3
    delay: float = 0.0
    #: The form of a reply without text and calls.
    empty_shape: Literal["choices", "null", "list", "text"] = "null"

    def without_finish(self) -> ResolvedReply:
        """Return the same reply without its finish reason."""
        return replace(self, finish=None)


def resolve_reply(reply: CompleteReply, request: ProviderRequest) -> ResolvedReply:
    """Resolve ids and tokens of a reply; equal inputs give equal results."""
    text, thinking = _reply_texts(reply)
    calls = _resolve_calls(reply, request)
    usage = reply.usage if isinstance(reply, Text | Calls) else None
    return ResolvedReply(
        number=request.number,
        model=request.model,
        usage=usage or count_tokens(request, text, thinking, calls),
        text=text,
        calls=calls,
        thinking=thinking,
        finish="tools" if calls else "length" if isinstance(reply, LengthStop) else "stop",
        chunks=reply.chunks if isinstance(reply, Text | Calls | LengthStop) else 3,
        delay=reply.delay if isinstance(reply, Text | Calls) else 0.0,
        empty_shape=_select_empty_shape(reply),
    )


def count_tokens(
    request: ProviderRequest, text: str, thinking: str | None, calls: tuple[ResolvedCall, ...]
) -> ReplyUsage:
    """Return the tokens of an exchange, at four characters each."""
    reasoning = _estimate_tokens(thinking or "")
    arguments = sum(_estimate_tokens(call.name + call.arguments) for call in calls)
    output = _estimate_tokens(text) + arguments + reasoning
    return ReplyUsage(request.input_tokens, output, reasoning=reasoning)


def split_text(text: str, pieces: int) -> list[str]:
    """Split into roughly equal pieces that join to the text; an empty text has none."""
    pieces = max(1, min(pieces, len(text)))
    edges = [len(text) * i // pieces for i in range(pieces + 1)]
    return [text[a:b] for a, b in itertools.pairwise(edges) if a < b]


def _estimate_tokens(text: str) -> int:
    return -(-len(text) // 4)


def _reply_texts(reply: CompleteReply) -> tuple[str, str | None]:
    if isinstance(reply, Text | Calls):
        return reply.text, reply.thinking
    if isinstance(reply, LengthStop):
        return reply.text, None
    blank = isinstance(reply, EmptyText) and reply.shape == "blank"
    return ("  \n" if blank else ""), None


def _select_empty_shape(reply: CompleteReply) -> Literal["choices", "null", "list", "text"]:
    if isinstance(reply, EmptyChoices):
        return "choices"
    if isinstance(reply, EmptyText) and reply.shape in {"null", "list"}:
        return "null" if reply.shape == "null" else "list"
    return "text" if isinstance(reply, Text | EmptyText) else "null"


def _resolve_calls(reply: CompleteReply, request: ProviderRequest) -> tuple[ResolvedCall, ...]:
    def make_id(index: int) -> str:
        prefix = "toolu" if request.format == "messages" else "call"
        return f"{prefix}_{request.number:06}_{index}"

    if isinstance(reply, Calls):
        return tuple(
            ResolvedCall(
                id=call.id or make_id(i), name=call.name, arguments=json.dumps(dict(call.args))
            )
            for i, call in enumerate(reply.calls)
        )
    if isinstance(reply, MalformedArguments):
        return (ResolvedCall(id=make_id(0), name=reply.name, arguments=reply.arguments),)
    if isinstance(reply, UnknownTool):
        arguments = json.dumps(dict(reply.args))
        return (ResolvedCall(id=make_id(0), name=reply.name, arguments=arguments),)
    return ()
