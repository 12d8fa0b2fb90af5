"""
JSON-RPC 2.0 frames: text in, messages out, and back; no I/O.

One frame is one message: one text frame of a WebSocket, one line of a pipe. Batches are refused:
requests run side by side anyway, and each is answered as soon as it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from clew.wire.errors import Code, Error
from clew.wire.json_text import read_json, write_json

VERSION = "2.0"
#: What a frame is called that the server sends unasked.
EVENT = "event"
#: Bytes of one frame, either way; attachments are inside.
LARGEST = 16 * 1024 * 1024

RequestId = str | int
Fields = Mapping[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A call; without ``id`` a notification, which is carried out and not answered."""

    method: str
    params: Fields = field(default_factory=dict[str, object])
    id: RequestId | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """What a call has come to."""

    id: RequestId
    result: object


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a call has come to nothing; without ``id`` it was none that could be read."""

    id: RequestId | None
    error: Error


Message = Request | Response | Failure


class FrameError(Exception):
    """A frame is no message; ``failure`` is the answer to it."""

    def __init__(self, error: Error, request: RequestId | None = None) -> None:
        super().__init__(error.message)
        self.failure = Failure(id=request, error=error)


def parse(frame: str | bytes) -> Message:
    """:raises FrameError: if it is no message"""
    raw = frame.encode("utf-8", "surrogatepass") if isinstance(frame, str) else frame
    if len(raw) > LARGEST:
        raise FrameError(
            Error.of(Code.INVALID_REQUEST, f"the message is larger than {LARGEST >> 20} MB")
        )
    try:
        found = read_json(raw)
    except ValueError as error:
        raise FrameError(Error.of(Code.PARSE, f"the message is no JSON: {error}")) from None
    if isinstance(found, list):
        raise _invalid("batches are not taken: send the requests one by one", None)
    if not isinstance(found, dict):
        raise _invalid("a message is a JSON object", None)
    return _message(cast("dict[str, object]", found))


def _message(found: dict[str, object]) -> Message:
    given = found.get("id")
    id_ = given if isinstance(given, (str, int)) and not isinstance(given, bool) else None
    if found.get("jsonrpc") != VERSION:
        raise _invalid('a message says "jsonrpc": "2.0"', id_)
    if "method" in found:
        return _request(found, id_)
    if id_ is not None and "result" in found and "error" not in found:
        return Response(id=id_, result=found["result"])
    if isinstance(found.get("error"), dict) and "result" not in found:
        return Failure(id=id_, error=Error.read(cast("dict[str, object]", found["error"])))
    raise _invalid("a request names a method, a response has a result or an error", id_)


def _request(found: dict[str, object], id_: RequestId | None) -> Request:
    method, params = found["method"], found.get("params", {})
    if not isinstance(method, str):
        raise _invalid("method is a text", id_)
    if "id" in found and id_ is None:
        raise _invalid("id is a text or a whole number", None)
    if not isinstance(params, dict):
        raise FrameError(
            Error.of(Code.INVALID_PARAMS, "params is an object: arguments go by their names"), id_
        )
    return Request(method=method, params=cast("dict[str, object]", params), id=id_)


def _invalid(message: str, id_: RequestId | None) -> FrameError:
    return FrameError(Error.of(Code.INVALID_REQUEST, message), id_)


def write(message: Message) -> str:
    """A message as one line of text, without the line's end."""
    return write_json({"jsonrpc": VERSION, **_fields(message)})


def write_event(params: Fields) -> str:
    """A notification of what happened."""
    return write_json({"jsonrpc": VERSION, "method": EVENT, "params": params})


def _fields(message: Message) -> dict[str, object]:
    match message:
        case Request():
            head = {} if message.id is None else {"id": message.id}
            return {**head, "method": message.method, "params": message.params}
        case Response():
            return {"id": message.id, "result": message.result}
        case Failure():
            return {"id": message.id, "error": message.error.fields}
