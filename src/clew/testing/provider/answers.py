"""A reply made definite: texts, calls with ids, a finish reason and the tokens it cost."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from clew.testing.provider.replies import (
    Calls,
    EmptyChoices,
    EmptyText,
    LengthStop,
    MalformedArguments,
    Spoken,
    Text,
    UnknownTool,
    Usage,
)

if TYPE_CHECKING:
    from clew.testing.provider.request import Request

Finish: TypeAlias = Literal["stop", "length", "tools"]
#: A fixed time, so that equal scripts give equal bytes.
CREATED = 1_700_000_000


class Frame(NamedTuple):
    """A piece of a stream; ``content`` pieces are the chunks that scripts count."""

    data: str
    content: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """A tool call as it goes out; the arguments may be broken JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a format has to express."""

    number: int
    model: str
    usage: Usage
    text: str = ""
    calls: tuple[Invocation, ...] = ()
    thinking: str | None = None
    #: ``None``: the answer has not ended.
    finish: Finish | None = "stop"
    chunks: int = 3
    delay: float = 0.0
    #: How an answer without text and calls is empty.
    hollow: Literal["choices", "null", "list", "text"] = "null"

    def unfinished(self) -> Answer:
        """The same answer without its finish reason."""
        return replace(self, finish=None)


def settle(reply: Spoken, request: Request) -> Answer:
    """Give the reply its ids and tokens; equal inputs give equal answers."""
    text, thinking = _words(reply)
    calls = _invocations(reply, request)
    usage = reply.usage if isinstance(reply, Text | Calls) else None
    return Answer(
        number=request.number,
        model=request.model,
        usage=usage or count(request, text, thinking, calls),
        text=text,
        calls=calls,
        thinking=thinking,
        finish="tools" if calls else "length" if isinstance(reply, LengthStop) else "stop",
        chunks=reply.chunks if isinstance(reply, Text | Calls | LengthStop) else 3,
        delay=reply.delay if isinstance(reply, Text | Calls) else 0.0,
        hollow=_hollow(reply),
    )


def count(
    request: Request, text: str, thinking: str | None, calls: tuple[Invocation, ...]
) -> Usage:
    """The tokens of an exchange: four characters each."""
    reasoning = _tokens(thinking or "")
    arguments = sum(_tokens(call.name + call.arguments) for call in calls)
    output = _tokens(text) + arguments + reasoning
    return Usage(request.input_tokens, output, reasoning=reasoning)


def split(text: str, pieces: int) -> list[str]:
    """Cut into about equal pieces that give the text again when joined; an empty text has none."""
    pieces = max(1, min(pieces, len(text)))
    edges = [len(text) * i // pieces for i in range(pieces + 1)]
    return [text[a:b] for a, b in itertools.pairwise(edges) if a < b]


def _tokens(text: str) -> int:
    return -(-len(text) // 4)


def _words(reply: Spoken) -> tuple[str, str | None]:
    if isinstance(reply, Text | Calls):
        return reply.text, reply.thinking
    if isinstance(reply, LengthStop):
        return reply.text, None
    blank = isinstance(reply, EmptyText) and reply.shape == "blank"
    return ("  \n" if blank else ""), None


def _hollow(reply: Spoken) -> Literal["choices", "null", "list", "text"]:
    if isinstance(reply, EmptyChoices):
        return "choices"
    if isinstance(reply, EmptyText) and reply.shape in {"null", "list"}:
        return "null" if reply.shape == "null" else "list"
    return "text" if isinstance(reply, Text | EmptyText) else "null"


def _invocations(reply: Spoken, request: Request) -> tuple[Invocation, ...]:
    def made(index: int) -> str:
        prefix = "toolu" if request.format == "messages" else "call"
        return f"{prefix}_{request.number:06}_{index}"

    if isinstance(reply, Calls):
        return tuple(
            Invocation(id=call.id or made(i), name=call.name, arguments=json.dumps(dict(call.args)))
            for i, call in enumerate(reply.calls)
        )
    if isinstance(reply, MalformedArguments):
        return (Invocation(id=made(0), name=reply.name, arguments=reply.arguments),)
    if isinstance(reply, UnknownTool):
        arguments = json.dumps(dict(reply.args))
        return (Invocation(id=made(0), name=reply.name, arguments=arguments),)
    return ()
