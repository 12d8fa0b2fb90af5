"""What a script can answer: good replies and every way in which a provider fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FailKind: TypeAlias = Literal[
    "rate_limit",  # 429, try again
    "quota",  # 429 at OpenAI, the money is gone: trying again is useless
    "authentication",  # 401
    "payment",  # 402
    "unknown_model",  # 404
    "too_large",  # 413
    "context_overflow",  # 400
    "bad_tool_call",  # 400, a tool call in the history is not JSON
    "server",  # 500
    "unavailable",  # 503
    "overloaded",  # 529
]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counts them; ``input`` contains ``cached``."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    """An answer in words, streamed in ``chunks`` pieces with ``delay`` seconds before each."""

    text: str
    chunks: int = 3
    delay: float = 0.0
    thinking: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; without ``id`` the server makes one that is unique in it."""

    name: str
    args: Mapping[str, object] = field(default_factory=dict[str, object])
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Tool calls, parallel if there are several; their arguments stream in ``chunks`` fragments."""

    calls: Sequence[Call]
    text: str = ""
    chunks: int = 3
    delay: float = 0.0
    thinking: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class LengthStop:
    """An answer that ends because the limit of output tokens was reached."""

    text: str = "this answer was cut by the limit of"
    chunks: int = 3


@dataclass(frozen=True, slots=True)
class EmptyChoices:
    """Success without any choice (Chat), output item (Responses) or content block (Messages)."""


@dataclass(frozen=True, slots=True)
class EmptyText:
    """Success with a message that says nothing: no content, an empty list, or an empty text."""

    shape: Literal["null", "list", "empty", "blank"] = "empty"


@dataclass(frozen=True, slots=True)
class MalformedArguments:
    """A tool call whose arguments are not JSON; unstreamed Messages carry them as a string."""

    name: str
    arguments: str = '{"path": "a.txt", "text": '


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """A call of a tool that was not offered."""

    name: str = "no_such_tool"
    args: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Fail:
    """
    An error status with the body that the provider of this format really sends.

    ``status`` replaces the usual status of the kind, ``body`` the usual body; ``window`` is the
    number of tokens that a context overflow tells.
    """

    kind: FailKind = "server"
    status: int | None = None
    body: Mapping[str, object] | None = None
    retry_after: float | None = None
    window: int = 8192


@dataclass(frozen=True, slots=True)
class Html:
    """A web page where JSON is due, as a captive portal (200) or a proxy (502) sends it."""

    status: int = 502


#: What is being said when a stream breaks, in six chunks.
STORY = Text("one two three four five six", chunks=6)


@dataclass(frozen=True, slots=True)
class CutStream:
    """The socket is closed in the middle, after ``after`` chunks; unstreamed, within the body."""

    after: int = 1
    reply: Spoken = STORY


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """The body ends properly but the answer does not: no finish reason, no end event."""

    after: int = 1
    reply: Spoken = STORY


@dataclass(frozen=True, slots=True)
class StreamError:
    """An error event after ``after`` chunks of a stream; unstreamed, a plain :class:`Fail`."""

    kind: FailKind = "overloaded"
    after: int = 1
    reply: Spoken = STORY


@dataclass(frozen=True, slots=True)
class Hang:
    """The request is accepted and never answered, until the client or the server closes."""


@dataclass(frozen=True, slots=True)
class Endless:
    """A body that never ends: a word each ``interval`` seconds, blanks if unstreamed."""

    interval: float = 0.01
    limit: int = 100_000


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are, in these pieces, whatever was asked for."""

    pieces: tuple[bytes, ...]
    kind: str | None = "text/event-stream"
    status: int = 200


@dataclass(frozen=True, slots=True)
class Slow:
    """Another reply, ``seconds`` late."""

    reply: Reply
    seconds: float = 1.0


Spoken: TypeAlias = (
    Text | Calls | LengthStop | EmptyChoices | EmptyText | MalformedArguments | UnknownTool
)
Broken: TypeAlias = Raw | Fail | Html | CutStream | EarlyEnd | StreamError | Hang | Endless
Reply: TypeAlias = Spoken | Broken | Slow
