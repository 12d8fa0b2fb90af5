"""Replies that a script can give: good ones and every way in which a provider fails."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FailKind: TypeAlias = Literal[
    "rate_limit",  # 429, worth a retry
    "quota",  # 429 at OpenAI, out of credit: a retry is useless
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


class ReplyUsage(Record, kw_only=False):
    """Tokens as the provider counts them; ``input`` contains ``cached``."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0


class Text(Record, kw_only=False):
    """A text reply, streamed in ``chunks`` pieces with ``delay`` seconds before each."""

    text: str
    chunks: int = 3
    delay: float = 0.0
    thinking: str | None = None
    usage: ReplyUsage | None = None


class ScriptedCall(Record, kw_only=False):
    """One tool call; without ``id`` the server assigns a unique one."""

    name: str
    args: Mapping[str, object] = field(default_factory=dict[str, object])
    id: str | None = None


class Calls(Record, kw_only=False):
    """Tool calls, parallel if several; their arguments are streamed in ``chunks`` pieces."""

    calls: Sequence[ScriptedCall]
    text: str = ""
    chunks: int = 3
    delay: float = 0.0
    thinking: str | None = None
    usage: ReplyUsage | None = None


class LengthStop(Record, kw_only=False):
    """A reply that ends at the limit of output tokens."""

    text: str = "this answer was cut by the limit of"
    chunks: int = 3


class EmptyChoices(Record, kw_only=False):
    """A success without any choice (Chat), output item (Responses) or block (Messages)."""


class EmptyText(Record, kw_only=False):
    """A success with an empty message: no content, an empty list, or an empty text."""

    shape: Literal["null", "list", "empty", "blank"] = "empty"


class MalformedArguments(Record, kw_only=False):
    """A tool call with invalid JSON arguments; unstreamed Messages carry them as a string."""

    name: str
    arguments: str = '{"path": "a.txt", "text": '


class UnknownTool(Record, kw_only=False):
    """A call of a tool that was not offered."""

    name: str = "no_such_tool"
    args: Mapping[str, object] = field(default_factory=dict[str, object])


class Fail(Record, kw_only=False):
    """
    An error status with the body that the real provider of this format sends.

    ``status`` replaces the default status of the kind, ``body`` the default body;
    ``window`` is the number of tokens that a context overflow reports.
    """

    kind: FailKind = "server"
    status: int | None = None
    body: Mapping[str, object] | None = None
    retry_after: float | None = None
    window: int = 8192


class Html(Record, kw_only=False):
    """A web page instead of JSON, as a captive portal (200) or a proxy (502) sends it."""

    status: int = 502


#: The default text of a stream that breaks, in six chunks.
DEFAULT_TEXT = Text("one two three four five six", chunks=6)


class CutStream(Record, kw_only=False):
    """A connection closed after ``after`` chunks; unstreamed, within the body."""

    after: int = 1
    reply: CompleteReply = DEFAULT_TEXT


class EarlyEnd(Record, kw_only=False):
    """A proper end of the body before the end of the reply: no finish reason, no end event."""

    after: int = 1
    reply: CompleteReply = DEFAULT_TEXT


class StreamError(Record, kw_only=False):
    """An error event after ``after`` chunks of a stream; unstreamed, a plain :class:`Fail`."""

    kind: FailKind = "overloaded"
    after: int = 1
    reply: CompleteReply = DEFAULT_TEXT


class Hang(Record, kw_only=False):
    """A request that is accepted and never answered, until the client or server closes."""


class Endless(Record, kw_only=False):
    """A body that never ends: a word every ``interval`` seconds, spaces if unstreamed."""

    interval: float = 0.01
    limit: int = 100_000


class Raw(Record, kw_only=False):
    """These bytes, in these pieces, whatever was requested."""

    pieces: tuple[bytes, ...]
    kind: str | None = "text/event-stream"
    status: int = 200


class Slow(Record, kw_only=False):
    """Another reply, delayed by ``seconds``."""

    reply: Reply
    seconds: float = 1.0


CompleteReply: TypeAlias = (
    Text | Calls | LengthStop | EmptyChoices | EmptyText | MalformedArguments | UnknownTool
)
BrokenReply: TypeAlias = Raw | Fail | Html | CutStream | EarlyEnd | StreamError | Hang | Endless
Reply: TypeAlias = CompleteReply | BrokenReply | Slow
