"""Quirks, and the response bodies built from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from clew.record import Record, replace
from clew.testing.provider import chat_format, messages_format, responses_format
from clew.testing.provider.replies import ReplyUsage
from clew.testing.provider.resolved_reply import ResolvedCall, ResolvedReply

if TYPE_CHECKING:
    from clew.testing.provider.request import WireFormat

FORMATS: tuple[WireFormat, ...] = ("chat", "responses", "messages")
RENDERERS = {"chat": chat_format, "responses": responses_format, "messages": messages_format}
STREAM_TYPE, JSON_TYPE = "text/event-stream", "application/json"

DEFAULT_USAGE = ReplyUsage(40, 7)
TEXT_REPLY = ResolvedReply(
    number=1, model="fake-model", usage=DEFAULT_USAGE, text="The answer is 42, I think."
)
CALL_REPLY = replace(
    TEXT_REPLY,
    text="",
    calls=(ResolvedCall(id="call_a", name="look", arguments='{"at": "the map", "times": 2}'),),
    finish="tools",
)
TWO_CALLS_REPLY = replace(
    CALL_REPLY,
    calls=(*CALL_REPLY.calls, ResolvedCall(id="call_b", name="add", arguments='{"a": 1, "b": 2}')),
)


class ReplyEvent(NamedTuple):
    """One event of a stream: its name, and its data as JSON or as raw text."""

    name: str | None
    data: Any


class ReplyBody(NamedTuple):
    """The body of a reply: its pieces and its declared content type."""

    pieces: tuple[bytes, ...]
    kind: str | None
    status: int = 200
    headers: Mapping[str, str] = {}
    #: The action after the last piece.
    after: str = "end"


#: Changes a correct reply to what a server with the quirk sends.
StreamChange: TypeAlias = Callable[[list[ReplyEvent]], "ReplyBody | list[ReplyEvent] | None"]
BodyChange: TypeAlias = Callable[[dict[str, Any]], "ReplyBody | dict[str, Any] | None"]
ExpectedCall: TypeAlias = tuple[str, Mapping[str, Any]]


class Quirk(Record):
    """A quirk, and the content that must be read from it."""

    id: str
    #: A description for people.
    description: str
    #: The correct reply to change.
    reply: ResolvedReply = TEXT_REPLY
    stream: Mapping[WireFormat, StreamChange] = field(
        default_factory=dict["WireFormat", StreamChange]
    )
    whole: Mapping[WireFormat, BodyChange] = field(default_factory=dict["WireFormat", BodyChange])
    #: The content to read; ``None``: as in the reply.
    text: str | None = None
    thinking: str | None = None
    calls: tuple[ExpectedCall, ...] | None = None
    #: Tokens in and out; zeros if the server's numbers cannot be right.
    usage: tuple[int, int] = (40, 7)
    #: If the reply is an error: its kind, and a part of its message.
    failure: tuple[str, str] | None = None
    #: The finish reason to read.
    finish: str | None = None


class QuirkCase(NamedTuple):
    """A quirk in one format, streamed or not."""

    quirk: Quirk
    format: WireFormat
    stream: bool
    body: ReplyBody

    @property
    def id(self) -> str:
        return f"{self.quirk.id}-{self.format}-{'streamed' if self.stream else 'whole'}"


def build_cases(quirks: Iterable[Quirk]) -> list[QuirkCase]:
    """Return a case for each format and mode in which a quirk occurs."""
    return [case for quirk in quirks for form in FORMATS for case in _quirk_cases(quirk, form)]


def _quirk_cases(quirk: Quirk, form: WireFormat) -> list[QuirkCase]:
    ways = ((True, _build_stream(quirk, form)), (False, _build_body(quirk, form)))
    return [QuirkCase(quirk, form, way, body) for way, body in ways if body is not None]


def _build_stream(quirk: Quirk, form: WireFormat) -> ReplyBody | None:
    if (change := quirk.stream.get(form)) is None:
        return None
    changed = change(render_events(form, quirk.reply))
    return (
        changed if changed is None or isinstance(changed, ReplyBody) else build_stream_body(changed)
    )


def _build_body(quirk: Quirk, form: WireFormat) -> ReplyBody | None:
    if (change := quirk.whole.get(form)) is None:
        return None
    changed = change(json.loads(json.dumps(RENDERERS[form].render_body(quirk.reply))))
    return (
        changed if changed is None or isinstance(changed, ReplyBody) else build_json_body(changed)
    )


def render_events(form: WireFormat, answer: ResolvedReply) -> list[ReplyEvent]:
    """Return the events of a correct stream."""
    asked = {"stream_options": {"include_usage": True}}
    found: list[ReplyEvent] = []
    for frame in RENDERERS[form].render_frames(answer, asked):
        lines = dict(line.split(": ", 1) for line in frame.data.strip().splitlines())
        data = lines["data"]
        parsed = data if data == "[DONE]" else json.loads(data)
        found.append(ReplyEvent(lines.get("event"), parsed))
    return found


def encode_event(event: ReplyEvent) -> bytes:
    """Encode an event."""
    text = event.data if isinstance(event.data, str) else json.dumps(event.data)
    name = f"event: {event.name}\n" if event.name else ""
    return f"{name}data: {text}\n\n".encode()


def insert_events(*events: ReplyEvent) -> StreamChange:
    """Insert events after each event but the last."""
    return lambda given: [e for one in given[:-1] for e in (one, *events)] + given[-1:]


def build_stream_body(
    events: Iterable[ReplyEvent], *, kind: str | None = STREAM_TYPE, after: str = "end"
) -> ReplyBody:
    """Return the body of a stream, one piece for each event."""
    return ReplyBody(tuple(map(encode_event, events)), kind, after=after)


def build_json_body(value: object, *, kind: str | None = JSON_TYPE, status: int = 200) -> ReplyBody:
    """Return a body of one JSON value."""
    return ReplyBody((json.dumps(value).encode(),), kind, status)
