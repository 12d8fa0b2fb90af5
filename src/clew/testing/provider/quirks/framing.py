"""Quirks of framing: the bytes around the JSON."""

# This table consists of JSON of any shape.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

from clew.record import replace
from clew.testing.provider.quirks.quirk import (
    FORMATS,
    JSON_TYPE,
    STREAM_TYPE,
    TEXT_REPLY,
    Quirk,
    ReplyBody,
    ReplyEvent,
    build_json_body,
    build_stream_body,
    encode_event,
    insert_events,
    render_events,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.testing.provider.quirks.quirk import BodyChange, StreamChange

ACCENTED_REPLY = replace(TEXT_REPLY, text="Das macht 42 €, nämlich 😀 genau.", chunks=5)


def _for_all_formats(change: StreamChange) -> dict[Any, StreamChange]:
    return dict.fromkeys(FORMATS, change)


def _body_for_all_formats(change: BodyChange) -> dict[Any, BodyChange]:
    return dict.fromkeys(FORMATS, change)


def _change_bytes(change: Callable[[bytes], bytes]) -> StreamChange:
    """Change the whole body as bytes."""
    return lambda events: ReplyBody((change(b"".join(map(encode_event, events))),), STREAM_TYPE)


def _insert_line(text: bytes) -> StreamChange:
    """Insert a line after the first line of each event."""
    return _change_bytes(lambda body: body.replace(b"\n\n", b"\n" + text + b"\n\n"))


def _split_pieces(size: int) -> StreamChange:
    def split_body(events: list[ReplyEvent]) -> ReplyBody:
        body = b"".join(encode_unescaped(event) for event in events)
        return ReplyBody(tuple(body[n : n + size] for n in range(0, len(body), size)), STREAM_TYPE)

    return split_body


def encode_unescaped(event: ReplyEvent) -> bytes:
    """Encode an event without escaping non-ASCII characters."""
    if isinstance(event.data, str):
        return encode_event(event)
    return encode_event(ReplyEvent(event.name, json.dumps(event.data, ensure_ascii=False)))


def _pretty_print(events: list[ReplyEvent]) -> ReplyBody:
    pieces: list[bytes] = []
    for event in events:
        text = event.data if isinstance(event.data, str) else json.dumps(event.data, indent=1)
        name = f"event: {event.name}\n" if event.name else ""
        data = "".join(f"data: {line}\n" for line in text.splitlines())
        pieces.append(f"{name}{data}\n".encode())
    return ReplyBody(tuple(pieces), STREAM_TYPE)


def _send_json_lines(events: list[ReplyEvent]) -> ReplyBody:
    objects = [event.data for event in events if isinstance(event.data, dict)]
    return ReplyBody(
        tuple(json.dumps(one).encode() + b"\n" for one in objects), "application/x-ndjson"
    )


def _gzip_body(events: list[ReplyEvent]) -> ReplyBody:
    body = gzip.compress(b"".join(map(encode_event, events)))
    return ReplyBody((body,), STREAM_TYPE, headers={"content-encoding": "gzip"})


def _deflate_body(events: list[ReplyEvent]) -> ReplyBody:
    body = zlib.compress(b"".join(map(encode_event, events)))
    return ReplyBody((body,), STREAM_TYPE, headers={"content-encoding": "deflate"})


def _drop_last_blank_line(events: list[ReplyEvent]) -> ReplyBody:
    body = build_stream_body(events)
    return body._replace(pieces=(*body.pieces[:-1], body.pieces[-1].rstrip(b"\n")))


def _stop_after_end(after: str) -> StreamChange:
    """Drop everything after the finish reason, then disconnect or hang."""

    def drop_rest(events: list[ReplyEvent]) -> ReplyBody:
        ends = ("response.completed", "message_stop")
        kept = [e for e in events if e.data != "[DONE]" and e.name != "message_stop"]
        assert len(kept) < len(events) or any(e.name in ends for e in events)
        return build_stream_body(kept, after=after)

    return drop_rest


def _break_utf8(events: list[ReplyEvent]) -> ReplyBody:
    body = b"".join(encode_unescaped(event) for event in events)
    return ReplyBody((body.replace("ä".encode(), b"\xe4"),), STREAM_TYPE)


def _send_stream(form: Any) -> BodyChange:
    return lambda _: build_stream_body(render_events(form, TEXT_REPLY))


def _join_chunks(events: list[ReplyEvent]) -> list[ReplyEvent]:
    objects = [event.data for event in events if isinstance(event.data, dict)]
    return [ReplyEvent(None, json.dumps(objects)), *[e for e in events if e.data == "[DONE]"]]


FRAMING_QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        id="data-null",
        description="`data: null` between events",
        stream=_for_all_formats(insert_events(ReplyEvent(None, "null"))),
    ),
    Quirk(
        id="data-empty",
        description="`data:` with nothing behind it",
        stream=_for_all_formats(insert_events(ReplyEvent(None, ""))),
    ),
    Quirk(
        id="data-words",
        description="words instead of JSON, such as `data: ping`",
        stream=_for_all_formats(
            insert_events(ReplyEvent(None, "ping"), ReplyEvent("keepalive", "still here"))
        ),
    ),
    Quirk(
        id="comment-after-id",
        description="an `id:` with each event, and comments after it",
        stream=_for_all_formats(
            _change_bytes(lambda body: body.replace(b"\n\n", b"\nid: 7\n\n: keep-alive\n\n"))
        ),
    ),
    Quirk(
        id="comments",
        description="comments within and between events",
        stream=_for_all_formats(_insert_line(b": PROCESSING")),
    ),
    Quirk(
        id="retry-field",
        description="`retry:` with each event",
        stream=_for_all_formats(_insert_line(b"retry: 3000")),
    ),
    Quirk(
        id="unknown-field",
        description="a field that is not of the protocol, with each event",
        stream=_for_all_formats(_insert_line(b"trace: 00-ab")),
    ),
    Quirk(
        id="crlf",
        description="lines that end in CR LF",
        stream=_for_all_formats(_change_bytes(lambda body: body.replace(b"\n", b"\r\n"))),
    ),
    Quirk(
        id="cr",
        description="lines that end in CR",
        stream=_for_all_formats(_change_bytes(lambda body: body.replace(b"\n", b"\r"))),
    ),
    Quirk(
        id="blank-lines",
        description="several blank lines between events",
        stream=_for_all_formats(
            _change_bytes(lambda body: b"\n\n" + body.replace(b"\n\n", b"\n\n\n\n"))
        ),
    ),
    Quirk(
        id="no-blank-line",
        description="no blank line after the last event",
        stream=_for_all_formats(_drop_last_blank_line),
    ),
    Quirk(
        id="no-space",
        description="`data:{...}` without the space",
        stream=_for_all_formats(
            _change_bytes(
                lambda body: body.replace(b"data: ", b"data:").replace(b"event: ", b"event:")
            )
        ),
    ),
    Quirk(
        id="bom",
        description="a byte order mark before the first event",
        stream=_for_all_formats(_change_bytes(lambda body: b"\xef\xbb\xbf" + body)),
        whole=_body_for_all_formats(
            lambda body: ReplyBody((b"\xef\xbb\xbf" + json.dumps(body).encode(),), JSON_TYPE)
        ),
    ),
    Quirk(
        id="byte-by-byte",
        description="each byte in a piece of its own",
        reply=ACCENTED_REPLY,
        stream=_for_all_formats(_split_pieces(1)),
    ),
    Quirk(
        id="cut-anywhere",
        description="pieces of 7 bytes, that cut characters and line ends",
        reply=ACCENTED_REPLY,
        stream=_for_all_formats(_split_pieces(7)),
    ),
    Quirk(
        id="many-data-lines",
        description="JSON over many `data:` lines",
        stream=_for_all_formats(_pretty_print),
    ),
    Quirk(
        id="array-of-chunks",
        description="several chunks in one event, as an array",
        stream=_for_all_formats(_join_chunks),
    ),
    Quirk(
        id="json-lines",
        description="a JSON object a line, without `data:`",
        stream=_for_all_formats(_send_json_lines),
    ),
    Quirk(
        id="no-event-names",
        description="events without `event:`",
        stream=_for_all_formats(lambda events: [ReplyEvent(None, e.data) for e in events]),
    ),
    Quirk(
        id="event-names",
        description="`event: message` with each chunk",
        stream={"chat": lambda events: [ReplyEvent("message", e.data) for e in events]},
    ),
    Quirk(
        id="text-plain",
        description="`content-type: text/plain`",
        stream=_for_all_formats(lambda events: build_stream_body(events, kind="text/plain")),
        whole=_body_for_all_formats(lambda body: build_json_body(body, kind="text/plain")),
    ),
    Quirk(
        id="no-content-type",
        description="no `content-type`",
        stream=_for_all_formats(lambda events: build_stream_body(events, kind=None)),
        whole=_body_for_all_formats(lambda body: build_json_body(body, kind=None)),
    ),
    Quirk(
        id="gzip",
        description="a body packed with gzip",
        stream=_for_all_formats(_gzip_body),
        whole=_body_for_all_formats(
            lambda body: ReplyBody(
                (gzip.compress(json.dumps(body).encode()),),
                JSON_TYPE,
                headers={"content-encoding": "gzip"},
            )
        ),
    ),
    Quirk(
        id="deflate",
        description="a body packed with deflate",
        stream=_for_all_formats(_deflate_body),
        whole=_body_for_all_formats(
            lambda body: ReplyBody(
                (zlib.compress(json.dumps(body).encode()),),
                JSON_TYPE,
                headers={"content-encoding": "deflate"},
            )
        ),
    ),
    Quirk(
        id="not-utf8",
        description="bytes that are no UTF-8",
        reply=ACCENTED_REPLY,
        stream=_for_all_formats(_break_utf8),
        whole=_body_for_all_formats(
            lambda body: ReplyBody(
                (json.dumps(body, ensure_ascii=False).encode().replace("ä".encode(), b"\xe4"),),
                JSON_TYPE,
            )
        ),
        text=ACCENTED_REPLY.text.replace("ä", "\N{REPLACEMENT CHARACTER}"),
    ),
    Quirk(
        id="blanks-before",
        description="blank lines before the reply, to keep the connection alive",
        stream=_for_all_formats(_change_bytes(lambda body: b"\n\n  \n" + body)),
        whole=_body_for_all_formats(
            lambda body: ReplyBody((b"\n\n   ", json.dumps(body).encode()), JSON_TYPE)
        ),
    ),
    Quirk(
        id="done-and-more",
        description="more after the end of the reply",
        stream=_for_all_formats(lambda events: [*events, ReplyEvent(None, "[DONE]"), *events]),
    ),
    Quirk(
        id="stream-to-plain",
        description="a stream although none was asked for",
        whole={form: _send_stream(form) for form in FORMATS},
    ),
    Quirk(
        id="dropped-after-end",
        description="nothing after the reason of the end: the connection breaks",
        stream={"chat": _stop_after_end("drop"), "messages": _stop_after_end("drop")},
    ),
    Quirk(
        id="open-after-end",
        description="nothing after the reason of the end, and no end of the body",
        stream={"chat": _stop_after_end("hang"), "messages": _stop_after_end("hang")},
    ),
)
