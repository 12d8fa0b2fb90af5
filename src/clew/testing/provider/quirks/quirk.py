"""What a quirk is, and the bytes that come of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from clew.testing.provider import chat, messages, responses
from clew.testing.provider.answers import Answer, Invocation
from clew.testing.provider.replies import Usage

if TYPE_CHECKING:
    from clew.testing.provider.request import Format

FORMATS: tuple[Format, ...] = ("chat", "responses", "messages")
RENDERERS = {"chat": chat, "responses": responses, "messages": messages}
EVENTS, JSON = "text/event-stream", "application/json"

USAGE = Usage(40, 7)
TEXT = Answer(number=1, model="fake-model", usage=USAGE, text="The answer is 42, I think.")
CALL = replace(
    TEXT,
    text="",
    calls=(Invocation(id="call_a", name="look", arguments='{"at": "the map", "times": 2}'),),
    finish="tools",
)
TWO_CALLS = replace(
    CALL, calls=(*CALL.calls, Invocation(id="call_b", name="add", arguments='{"a": 1, "b": 2}'))
)


class Event(NamedTuple):
    """One event of a stream: its name, and its data as JSON or as it is."""

    name: str | None
    data: Any


class Body(NamedTuple):
    """The body of a reply: the pieces that it is sent in, and what it is said to be."""

    pieces: tuple[bytes, ...]
    kind: str | None
    status: int = 200
    headers: Mapping[str, str] = {}
    #: What happens after the last piece.
    after: str = "end"


#: Makes of a proper reply what a server with the quirk sends.
Streamed: TypeAlias = Callable[[list[Event]], "Body | list[Event] | None"]
Whole: TypeAlias = Callable[[dict[str, Any]], "Body | dict[str, Any] | None"]
Seen: TypeAlias = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Quirk:
    """A quirk, and what is to be read all the same."""

    id: str
    #: What the server does, for people.
    sends: str
    #: The proper reply that is changed.
    answer: Answer = TEXT
    stream: Mapping[Format, Streamed] = field(default_factory=dict["Format", Streamed])
    whole: Mapping[Format, Whole] = field(default_factory=dict["Format", Whole])
    #: What is read; ``None``: as in the answer.
    text: str | None = None
    thinking: str | None = None
    calls: tuple[Seen, ...] | None = None
    #: Tokens in and out; zeros where the server's own words cannot be true.
    usage: tuple[int, int] = (40, 7)
    #: The requests that are made; the second without what the server refuses.
    requests: int = 1
    #: Where the reply is an error: its kind, and words of it.
    failure: tuple[str, str] | None = None
    #: The finish reason that is read.
    finish: str | None = None


class Case(NamedTuple):
    """A quirk in one format, streamed or not."""

    quirk: Quirk
    form: Format
    stream: bool
    body: Body

    @property
    def id(self) -> str:
        return f"{self.quirk.id}-{self.form}-{'streamed' if self.stream else 'whole'}"


def cases(quirks: Iterable[Quirk]) -> list[Case]:
    """Return each quirk in each format and way in which it occurs."""
    return [case for quirk in quirks for form in FORMATS for case in _cases(quirk, form)]


def _cases(quirk: Quirk, form: Format) -> list[Case]:
    ways = ((True, _streamed(quirk, form)), (False, _whole(quirk, form)))
    return [Case(quirk, form, way, body) for way, body in ways if body is not None]


def _streamed(quirk: Quirk, form: Format) -> Body | None:
    if (change := quirk.stream.get(form)) is None:
        return None
    changed = change(events_of(form, quirk.answer))
    return changed if changed is None or isinstance(changed, Body) else stream_body(changed)


def _whole(quirk: Quirk, form: Format) -> Body | None:
    if (change := quirk.whole.get(form)) is None:
        return None
    changed = change(json.loads(json.dumps(RENDERERS[form].body(quirk.answer))))
    return changed if changed is None or isinstance(changed, Body) else json_body(changed)


def events_of(form: Format, answer: Answer) -> list[Event]:
    """Return the events of a proper stream."""
    asked = {"stream_options": {"include_usage": True}}
    found: list[Event] = []
    for frame in RENDERERS[form].frames(answer, asked):
        lines = dict(line.split(": ", 1) for line in frame.data.strip().splitlines())
        data = lines["data"]
        parsed = data if data == "[DONE]" else json.loads(data)
        found.append(Event(lines.get("event"), parsed))
    return found


def encoded(event: Event) -> bytes:
    """Return an event as bytes."""
    text = event.data if isinstance(event.data, str) else json.dumps(event.data)
    name = f"event: {event.name}\n" if event.name else ""
    return f"{name}data: {text}\n\n".encode()


def stream_body(events: Iterable[Event], *, kind: str | None = EVENTS, after: str = "end") -> Body:
    """Return the body of a stream, a piece for each event."""
    return Body(tuple(map(encoded, events)), kind, after=after)


def json_body(value: object, *, kind: str | None = JSON, status: int = 200) -> Body:
    """Return a body that is one JSON value."""
    return Body((json.dumps(value).encode(),), kind, status)
