"""Conversion of reply bodies to the bytes for the client library, for all three formats."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from pydantic_core import from_json, to_json

from clew.agent.tolerant.assembly import (
    assemble_chat_reply,
    assemble_messages_reply,
    assemble_responses_reply,
)
from clew.agent.tolerant.chat import ChatReader
from clew.agent.tolerant.messages import MessagesReader
from clew.agent.tolerant.responses import ResponsesReader
from clew.agent.tolerant.sse import SseEvent, SseParser, encode_event
from clew.agent.tolerant.surrogates import repair_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.agent.tolerant.errors import ReplyError
    from clew.agent.tolerant.reader import ReplyReader, ServerQuirks
    from clew.agent.tolerant.unknowns import UnknownReporter

__all__ = [
    "IncompleteReplyError",
    "ReplyFormat",
    "StreamDecoder",
    "decode_whole_reply",
    "encode_json",
    "find_reply_format",
]

ReplyFormat: TypeAlias = Literal["chat", "responses", "messages"]
_FORMATS_BY_PATH: Final[dict[str, ReplyFormat]] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "messages",
}
_DONE_EVENT: Final = b"data: [DONE]\n\n"
_READERS: Final[dict[ReplyFormat, type[ChatReader | ResponsesReader | MessagesReader]]] = {
    "chat": ChatReader,
    "responses": ResponsesReader,
    "messages": MessagesReader,
}


class IncompleteReplyError(Exception):
    """Reply that stopped before its end."""


def find_reply_format(path: str) -> ReplyFormat | None:
    """Return the format of the replies to a request; ``None`` if it is not handled here."""
    return next((form for end, form in _FORMATS_BY_PATH.items() if path.endswith(end)), None)


class StreamDecoder:
    """Decoder that normalises the body of a streamed reply, piece by piece."""

    def __init__(self, form: ReplyFormat, note: UnknownReporter, habits: ServerQuirks) -> None:
        self._format, self._note = form, note
        self._events = SseParser()
        self._reader: ReplyReader = _READERS[form](note, habits)
        #: Start of a body that may be one JSON object; ``None`` once the form is known.
        self._start: bytes | None = b""
        self._is_json = False
        #: The end was sent: later data is ignored.
        self.has_ended = False

    @property
    def is_finished(self) -> bool:
        """Return whether the reply gave its finish reason, so that nothing can be missing."""
        return self._reader.is_finished

    def feed_piece(self, piece: bytes) -> list[bytes]:
        """
        Return the output available so far.

        :raises ReplyError: if the reply contains an error
        """
        if self._start is not None:
            self._start += piece
            bare = self._start.lstrip(b"\xef\xbb\xbf \t\r\n")
            if not bare:
                return []
            if self._is_json or bare[:1] in (b"{", b"["):
                # One object although a stream was requested, or one object per line.
                self._is_json = True
                return []
            piece, self._start = self._start, None
        return list(self._read_events(self._events.feed_bytes(piece)))

    def flush_rest(self) -> list[bytes]:
        """
        Return the output that the end of the body completes; nothing if the reply was cut.

        :raises ReplyError: if the reply contains an error
        """
        out: list[bytes] = []
        if self._start is not None:
            if (whole := _parse_json(self._start)) is None:
                out += self._read_events(
                    [*self._events.feed_bytes(self._start), *self._events.flush_events()]
                )
            elif not self.has_ended:
                # A whole object instead of a stream.
                self.has_ended = True
                out += self._encode_events(self._reader.read_whole(_first_object(whole)))
                out += [_DONE_EVENT] if self._format == "chat" else []
        else:
            out += self._read_events(self._events.flush_events())
        if not self.has_ended and self.is_finished:
            out += self._finish_stream(done=False)
        return out

    def encode_error(self, error: ReplyError) -> bytes:
        """Return an error after the start of the reply, in its format."""
        self.has_ended = True
        body = error.make_body(messages=self._format == "messages")
        if self._format == "responses":
            fields = {"type": "error", "code": error.code or str(error.status)}
            return _encode_event({**fields, "message": error.message, "param": None}, "error")
        if self._format == "chat":
            body["error"]["code"] = error.code or str(error.status)
        return _encode_event(body, "error" if self._format == "messages" else None)

    def _read_events(self, events: list[SseEvent]) -> Iterator[bytes]:
        for event in events:
            if self.has_ended:
                return
            text = event.data.strip()
            if text.startswith("[DONE]"):
                yield from self._finish_stream(done=True)
                return
            raw = text.encode("utf-8", "surrogateescape")
            value = _parse_strict(raw)
            if isinstance(value, dict) and self._reader.try_pass_through(
                cast("dict[str, Any]", value)
            ):
                kind = None if self._format == "chat" else cast("dict[str, Any]", value)["type"]
                # The line breaks inside an event are JSON white space.
                yield encode_event(raw.replace(b"\n", b" "), kind)
                continue
            value = _parse_json(raw) if value is None else cast("object", value)
            if value is None and text[:1] in ("{", "["):
                # It contains an unknown part of the answer.
                yield encode_event(text.encode("utf-8", "replace"), event.name)
                continue
            if value is None and text != "null":
                self._note("data", text)
            for data in _list_objects(value):
                yield from self._encode_events(self._reader.read_event(data, event.name))

    def _finish_stream(self, *, done: bool) -> Iterator[bytes]:
        self.has_ended = True
        yield from self._encode_events(self._reader.finish_stream(done=done))
        if self._format == "chat":
            yield _DONE_EVENT

    def _encode_events(self, events: Iterator[dict[str, Any]]) -> Iterator[bytes]:
        for event in events:
            yield _encode_event(event, None if self._format == "chat" else event["type"])


def decode_whole_reply(
    body: bytes, form: ReplyFormat, note: UnknownReporter, habits: ServerQuirks
) -> dict[str, Any] | None:
    """
    Return the reply in a body that is not streamed; ``None`` if it is unreadable.

    :raises ReplyError: if the reply contains an error
    :raises IncompleteReplyError: if it came as a stream that was cut
    """
    reader: ReplyReader = _READERS[form](note, habits)
    value = _parse_json(body)
    if value is not None:
        given = _first_object(value)
        return _assemble_reply(form, list(reader.read_whole(given)), given) if given else None
    events = SseParser()
    read = [*events.feed_bytes(body), *events.flush_events()]
    parsed = [(event, _parse_json(event.data.encode("utf-8", "surrogateescape"))) for event in read]
    if not any(isinstance(value, dict) for _, value in parsed):
        return None
    told: list[dict[str, Any]] = []
    for event, value in parsed:
        if isinstance(value, dict):
            told += reader.read_event(cast("dict[str, Any]", value), event.name)
    done = any(event.data.strip().startswith("[DONE]") for event in read)
    if not done and not reader.is_finished:
        raise IncompleteReplyError("the reply ended without its end")
    return _assemble_reply(form, [*told, *reader.finish_stream(done=done)], {})


def _assemble_reply(
    form: ReplyFormat, events: list[dict[str, Any]], given: dict[str, Any]
) -> dict[str, Any]:
    if form == "chat":
        return assemble_chat_reply(events, given)
    if not any(event["type"] in _END_EVENTS for event in events):
        # By its own status it has not ended.
        return given
    return (
        assemble_responses_reply(events) if form == "responses" else assemble_messages_reply(events)
    )


_END_EVENTS: Final = ("response.completed", "response.incomplete", "message_stop")


def encode_json(value: object) -> bytes:
    """Return JSON as bytes, also with lone surrogates, which are replaced."""
    try:
        return to_json(value, inf_nan_mode="null")
    except ValueError:
        return to_json(repair_json(value), inf_nan_mode="null")


def _encode_event(event: dict[str, Any], name: str | None) -> bytes:
    return encode_event(encode_json(event), name)


def _parse_strict(body: bytes) -> object:
    try:
        return from_json(body)
    except ValueError:
        return None


def _parse_json(body: bytes) -> object:
    """Return the JSON in a body; ``None`` if there is none."""
    body = body.removeprefix(b"\xef\xbb\xbf")
    if (value := _parse_strict(body)) is not None:
        return value
    try:
        # The lenient parser accepts lone surrogates and bytes that are not UTF-8.
        return json.loads(body.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


def _first_object(value: object) -> dict[str, Any]:
    objects = _list_objects(value)
    return objects[0] if objects else {}


def _list_objects(value: object) -> list[dict[str, Any]]:
    items = cast("list[object]", value if isinstance(value, list) else [value])
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
