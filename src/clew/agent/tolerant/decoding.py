"""From the bytes of a reply to the bytes that the client library reads, for all three formats."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from pydantic_core import from_json, to_json

from clew.agent.tolerant.chat import ChatReader
from clew.agent.tolerant.gather import chat_reply, messages_reply, responses_reply
from clew.agent.tolerant.messages import MessagesReader
from clew.agent.tolerant.responses import ResponsesReader
from clew.agent.tolerant.sse import Event, EventReader, encode
from clew.agent.tolerant.text import mend_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.agent.tolerant.errors import ReplyError
    from clew.agent.tolerant.notes import Note
    from clew.agent.tolerant.reply import Habits, Reader

__all__ = ["CutReplyError", "Format", "StreamDecoder", "decode_whole", "encode_json", "format_of"]

Format: TypeAlias = Literal["chat", "responses", "messages"]
_PATHS: Final[dict[str, Format]] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "messages",
}
_DONE: Final = b"data: [DONE]\n\n"
_READERS: Final[dict[Format, type[ChatReader | ResponsesReader | MessagesReader]]] = {
    "chat": ChatReader,
    "responses": ResponsesReader,
    "messages": MessagesReader,
}


class CutReplyError(Exception):
    """A reply that ended without its end."""


def format_of(path: str) -> Format | None:
    """Return the format of the replies to a request, if it is one that is read here."""
    return next((form for end, form in _PATHS.items() if path.endswith(end)), None)


class StreamDecoder:
    """Turns the body of a streamed reply into a proper one, piece by piece."""

    def __init__(self, form: Format, note: Note, habits: Habits) -> None:
        self._format, self._note = form, note
        self._events = EventReader()
        self._reader: Reader = _READERS[form](note, habits)
        #: The beginning of a body that may be one JSON object; ``None`` once it is known.
        self._start: bytes | None = b""
        self._is_json = False
        #: The end was told: what comes after it is of no interest.
        self.ended = False

    @property
    def finished(self) -> bool:
        """Whether the reply said why it ended, so that nothing of it can be missing."""
        return self._reader.finished

    def feed(self, piece: bytes) -> list[bytes]:
        """
        Return what can be told so far.

        :raises ReplyError: if the reply tells an error
        """
        if self._start is not None:
            self._start += piece
            bare = self._start.lstrip(b"\xef\xbb\xbf \t\r\n")
            if not bare:
                return []
            if self._is_json or bare[:1] in (b"{", b"["):
                # One object although a stream was asked for, or an object a line.
                self._is_json = True
                return []
            piece, self._start = self._start, None
        return list(self._read(self._events.feed(piece)))

    def end(self) -> list[bytes]:
        """
        Return what the end of the body completes; nothing where the reply was cut.

        :raises ReplyError: if the reply tells an error
        """
        out: list[bytes] = []
        if self._start is not None:
            if (whole := _parse(self._start)) is None:
                out += self._read([*self._events.feed(self._start), *self._events.end()])
            elif not self.ended:
                # A whole object in place of a stream.
                self.ended = True
                out += self._told(self._reader.whole(_first_object(whole)))
                out += [_DONE] if self._format == "chat" else []
        else:
            out += self._read(self._events.end())
        if not self.ended and self.finished:
            out += self._finish(done=False)
        return out

    def error(self, error: ReplyError) -> bytes:
        """Return an error that came after the beginning, as the format tells it."""
        self.ended = True
        body = error.body(messages=self._format == "messages")
        if self._format == "responses":
            fields = {"type": "error", "code": error.code or str(error.status)}
            return _encoded({**fields, "message": error.message, "param": None}, "error")
        if self._format == "chat":
            body["error"]["code"] = error.code or str(error.status)
        return _encoded(body, "error" if self._format == "messages" else None)

    def _read(self, events: list[Event]) -> Iterator[bytes]:
        for event in events:
            if self.ended:
                return
            text = event.data.strip()
            if text.startswith("[DONE]"):
                yield from self._finish(done=True)
                return
            raw = text.encode("utf-8", "surrogateescape")
            value = _strictly(raw)
            if isinstance(value, dict) and self._reader.passes(cast("dict[str, Any]", value)):
                kind = None if self._format == "chat" else cast("dict[str, Any]", value)["type"]
                # Between the lines of one event there is nothing but blanks of JSON.
                yield encode(raw.replace(b"\n", b" "), kind)
                continue
            value = _parse(raw) if value is None else cast("object", value)
            if value is None and text[:1] in ("{", "["):
                # Part of the answer is in it, and nobody can say which.
                yield encode(text.encode("utf-8", "replace"), event.name)
                continue
            if value is None and text != "null":
                self._note("data", text)
            for data in _objects(value):
                yield from self._told(self._reader.event(data, event.name))

    def _finish(self, *, done: bool) -> Iterator[bytes]:
        self.ended = True
        yield from self._told(self._reader.end(done=done))
        if self._format == "chat":
            yield _DONE

    def _told(self, events: Iterator[dict[str, Any]]) -> Iterator[bytes]:
        for event in events:
            yield _encoded(event, None if self._format == "chat" else event["type"])


def decode_whole(body: bytes, form: Format, note: Note, habits: Habits) -> dict[str, Any] | None:
    """
    Return the reply in a body that was not to be streamed; ``None`` if there is no sense in it.

    :raises ReplyError: if the reply tells an error
    :raises CutReplyError: if it came as a stream that was cut
    """
    reader: Reader = _READERS[form](note, habits)
    value = _parse(body)
    if value is not None:
        given = _first_object(value)
        return _reply(form, list(reader.whole(given)), given) if given else None
    events = EventReader()
    read = [*events.feed(body), *events.end()]
    parsed = [(event, _parse(event.data.encode("utf-8", "surrogateescape"))) for event in read]
    if not any(isinstance(value, dict) for _, value in parsed):
        return None
    told: list[dict[str, Any]] = []
    for event, value in parsed:
        if isinstance(value, dict):
            told += reader.event(cast("dict[str, Any]", value), event.name)
    done = any(event.data.strip().startswith("[DONE]") for event in read)
    if not done and not reader.finished:
        raise CutReplyError("the reply ended without its end")
    return _reply(form, [*told, *reader.end(done=done)], {})


def _reply(form: Format, events: list[dict[str, Any]], given: dict[str, Any]) -> dict[str, Any]:
    if form == "chat":
        return chat_reply(events, given)
    if not any(event["type"] in _ENDS for event in events):
        # It says itself that it has not ended.
        return given
    return responses_reply(events) if form == "responses" else messages_reply(events)


_ENDS: Final = ("response.completed", "response.incomplete", "message_stop")


def encode_json(value: object) -> bytes:
    """Return JSON as bytes, also where halves of characters stand in places that nobody reads."""
    try:
        return to_json(value, inf_nan_mode="null")
    except ValueError:
        return to_json(mend_all(value), inf_nan_mode="null")


def _encoded(event: dict[str, Any], name: str | None) -> bytes:
    return encode(encode_json(event), name)


def _strictly(body: bytes) -> object:
    try:
        return from_json(body)
    except ValueError:
        return None


def _parse(body: bytes) -> object:
    """The JSON in a body, ``None`` if there is none."""
    body = body.removeprefix(b"\xef\xbb\xbf")
    if (value := _strictly(body)) is not None:
        return value
    try:
        # It takes halves of characters, and bytes that are no UTF-8.
        return json.loads(body.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


def _first_object(value: object) -> dict[str, Any]:
    objects = _objects(value)
    return objects[0] if objects else {}


def _objects(value: object) -> list[dict[str, Any]]:
    items = cast("list[object]", value if isinstance(value, list) else [value])
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
