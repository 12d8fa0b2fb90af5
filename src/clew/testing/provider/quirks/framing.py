"""Quirks of how a reply is framed: the bytes around the JSON."""

# JSON of any shape is what this table is made of.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clew.testing.provider.quirks.quirk import (
    EVENTS,
    FORMATS,
    JSON,
    TEXT,
    Body,
    Event,
    Quirk,
    encoded,
    events_of,
    json_body,
    stream_body,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.testing.provider.quirks.quirk import Streamed, Whole

ACCENTS = replace(TEXT, text="Das macht 42 €, nämlich 😀 genau.", chunks=5)


def _everywhere(change: Streamed) -> dict[Any, Streamed]:
    return dict.fromkeys(FORMATS, change)


def _whole(change: Whole) -> dict[Any, Whole]:
    return dict.fromkeys(FORMATS, change)


def _bytes(change: Callable[[bytes], bytes]) -> Streamed:
    """Change the whole body as bytes."""
    return lambda events: Body((change(b"".join(map(encoded, events))),), EVENTS)


def _between(*events: Event) -> Streamed:
    """Put events after each event but the last."""
    return lambda given: [e for one in given[:-1] for e in (one, *events)] + given[-1:]


def _lines(text: bytes) -> Streamed:
    """Put a line after each event's first line."""
    return _bytes(lambda body: body.replace(b"\n\n", b"\n" + text + b"\n\n"))


def _pieces(size: int) -> Streamed:
    def cut(events: list[Event]) -> Body:
        body = b"".join(json_bytes(event) for event in events)
        return Body(tuple(body[n : n + size] for n in range(0, len(body), size)), EVENTS)

    return cut


def json_bytes(event: Event) -> bytes:
    """Return an event whose letters are not escaped."""
    if isinstance(event.data, str):
        return encoded(event)
    return encoded(Event(event.name, json.dumps(event.data, ensure_ascii=False)))


def _pretty(events: list[Event]) -> Body:
    pieces: list[bytes] = []
    for event in events:
        text = event.data if isinstance(event.data, str) else json.dumps(event.data, indent=1)
        name = f"event: {event.name}\n" if event.name else ""
        data = "".join(f"data: {line}\n" for line in text.splitlines())
        pieces.append(f"{name}{data}\n".encode())
    return Body(tuple(pieces), EVENTS)


def _json_lines(events: list[Event]) -> Body:
    objects = [event.data for event in events if isinstance(event.data, dict)]
    return Body(tuple(json.dumps(one).encode() + b"\n" for one in objects), "application/x-ndjson")


def _zipped(events: list[Event]) -> Body:
    body = gzip.compress(b"".join(map(encoded, events)))
    return Body((body,), EVENTS, headers={"content-encoding": "gzip"})


def _deflated(events: list[Event]) -> Body:
    body = zlib.compress(b"".join(map(encoded, events)))
    return Body((body,), EVENTS, headers={"content-encoding": "deflate"})


def _without_blank_line(events: list[Event]) -> Body:
    body = stream_body(events)
    return body._replace(pieces=(*body.pieces[:-1], body.pieces[-1].rstrip(b"\n")))


def _after(after: str) -> Streamed:
    """Send everything but what follows the reason of the end, and then break off or say nothing."""

    def cut(events: list[Event]) -> Body:
        ends = ("response.completed", "message_stop")
        kept = [e for e in events if e.data != "[DONE]" and e.name != "message_stop"]
        assert len(kept) < len(events) or any(e.name in ends for e in events)
        return stream_body(kept, after=after)

    return cut


def _invalid(events: list[Event]) -> Body:
    body = b"".join(json_bytes(event) for event in events)
    return Body((body.replace("ä".encode(), b"\xe4"),), EVENTS)


def _as_stream(form: Any) -> Whole:
    return lambda _: stream_body(events_of(form, TEXT))


def _all_at_once(events: list[Event]) -> list[Event]:
    objects = [event.data for event in events if isinstance(event.data, dict)]
    return [Event(None, json.dumps(objects)), *[e for e in events if e.data == "[DONE]"]]


FRAMING: tuple[Quirk, ...] = (
    Quirk(
        id="data-null",
        sends="`data: null` between events",
        stream=_everywhere(_between(Event(None, "null"))),
    ),
    Quirk(
        id="data-empty",
        sends="`data:` with nothing behind it",
        stream=_everywhere(_between(Event(None, ""))),
    ),
    Quirk(
        id="data-words",
        sends="words instead of JSON, such as `data: ping`",
        stream=_everywhere(_between(Event(None, "ping"), Event("keepalive", "still here"))),
    ),
    Quirk(
        id="comment-after-id",
        sends="an `id:` with each event, and comments after it",
        stream=_everywhere(
            _bytes(lambda body: body.replace(b"\n\n", b"\nid: 7\n\n: keep-alive\n\n"))
        ),
    ),
    Quirk(
        id="comments",
        sends="comments within and between events",
        stream=_everywhere(_lines(b": PROCESSING")),
    ),
    Quirk(
        id="retry-field",
        sends="`retry:` with each event",
        stream=_everywhere(_lines(b"retry: 3000")),
    ),
    Quirk(
        id="unknown-field",
        sends="a field that is not of the protocol, with each event",
        stream=_everywhere(_lines(b"trace: 00-ab")),
    ),
    Quirk(
        id="crlf",
        sends="lines that end in CR LF",
        stream=_everywhere(_bytes(lambda body: body.replace(b"\n", b"\r\n"))),
    ),
    Quirk(
        id="cr",
        sends="lines that end in CR",
        stream=_everywhere(_bytes(lambda body: body.replace(b"\n", b"\r"))),
    ),
    Quirk(
        id="blank-lines",
        sends="several blank lines between events",
        stream=_everywhere(_bytes(lambda body: b"\n\n" + body.replace(b"\n\n", b"\n\n\n\n"))),
    ),
    Quirk(
        id="no-blank-line",
        sends="no blank line after the last event",
        stream=_everywhere(_without_blank_line),
    ),
    Quirk(
        id="no-space",
        sends="`data:{...}` without the space",
        stream=_everywhere(
            _bytes(lambda body: body.replace(b"data: ", b"data:").replace(b"event: ", b"event:"))
        ),
    ),
    Quirk(
        id="bom",
        sends="a byte order mark before the first event",
        stream=_everywhere(_bytes(lambda body: b"\xef\xbb\xbf" + body)),
        whole=_whole(lambda body: Body((b"\xef\xbb\xbf" + json.dumps(body).encode(),), JSON)),
    ),
    Quirk(
        id="byte-by-byte",
        sends="each byte in a piece of its own",
        answer=ACCENTS,
        stream=_everywhere(_pieces(1)),
    ),
    Quirk(
        id="cut-anywhere",
        sends="pieces of 7 bytes, that cut characters and line ends",
        answer=ACCENTS,
        stream=_everywhere(_pieces(7)),
    ),
    Quirk(id="many-data-lines", sends="JSON over many `data:` lines", stream=_everywhere(_pretty)),
    Quirk(
        id="array-of-chunks",
        sends="several chunks in one event, as an array",
        stream=_everywhere(_all_at_once),
    ),
    Quirk(
        id="json-lines",
        sends="a JSON object a line, without `data:`",
        stream=_everywhere(_json_lines),
    ),
    Quirk(
        id="no-event-names",
        sends="events without `event:`",
        stream=_everywhere(lambda events: [Event(None, e.data) for e in events]),
    ),
    Quirk(
        id="event-names",
        sends="`event: message` with each chunk",
        stream={"chat": lambda events: [Event("message", e.data) for e in events]},
    ),
    Quirk(
        id="text-plain",
        sends="`content-type: text/plain`",
        stream=_everywhere(lambda events: stream_body(events, kind="text/plain")),
        whole=_whole(lambda body: json_body(body, kind="text/plain")),
    ),
    Quirk(
        id="no-content-type",
        sends="no `content-type`",
        stream=_everywhere(lambda events: stream_body(events, kind=None)),
        whole=_whole(lambda body: json_body(body, kind=None)),
    ),
    Quirk(
        id="gzip",
        sends="a body packed with gzip",
        stream=_everywhere(_zipped),
        whole=_whole(
            lambda body: Body(
                (gzip.compress(json.dumps(body).encode()),),
                JSON,
                headers={"content-encoding": "gzip"},
            )
        ),
    ),
    Quirk(
        id="deflate",
        sends="a body packed with deflate",
        stream=_everywhere(_deflated),
        whole=_whole(
            lambda body: Body(
                (zlib.compress(json.dumps(body).encode()),),
                JSON,
                headers={"content-encoding": "deflate"},
            )
        ),
    ),
    Quirk(
        id="not-utf8",
        sends="bytes that are no UTF-8",
        answer=ACCENTS,
        stream=_everywhere(_invalid),
        whole=_whole(
            lambda body: Body(
                (json.dumps(body, ensure_ascii=False).encode().replace("ä".encode(), b"\xe4"),),
                JSON,
            )
        ),
        text=ACCENTS.text.replace("ä", "\N{REPLACEMENT CHARACTER}"),
    ),
    Quirk(
        id="blanks-before",
        sends="blank lines before the reply, to keep the connection alive",
        stream=_everywhere(_bytes(lambda body: b"\n\n  \n" + body)),
        whole=_whole(lambda body: Body((b"\n\n   ", json.dumps(body).encode()), JSON)),
    ),
    Quirk(
        id="done-and-more",
        sends="more after the end of the reply",
        stream=_everywhere(lambda events: [*events, Event(None, "[DONE]"), *events]),
    ),
    Quirk(
        id="stream-to-plain",
        sends="a stream although none was asked for",
        whole={form: _as_stream(form) for form in FORMATS},
    ),
    Quirk(
        id="dropped-after-end",
        sends="nothing after the reason of the end: the connection breaks",
        stream={"chat": _after("drop"), "messages": _after("drop")},
    ),
    Quirk(
        id="open-after-end",
        sends="nothing after the reason of the end, and no end of the body",
        stream={"chat": _after("hang"), "messages": _after("hang")},
    ),
)
