"""
JSON-RPC 2.0 frames: parsing and writing, without I/O.

One frame is one message: one text frame of a WebSocket, one line of a pipe. Batches are
rejected: requests run concurrently anyway, and each is answered as soon as it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import cast

from clew.record import Record
from clew.wire.errors import ErrorCode, RpcError
from clew.wire.json import dump_json, parse_json

JSONRPC_VERSION = "2.0"
#: The method of notifications from the server.
EVENT_METHOD = "event"
#: The limit of a frame in bytes, either way, attachments included.
MAX_FRAME_BYTES = 16 * 1024 * 1024

RequestId = str | int
JsonFields = Mapping[str, object]


class RpcRequest(Record):
    """A call; without ``id`` a notification, which is processed and not answered."""

    method: str
    params: JsonFields = field(default_factory=dict[str, object])
    id: RequestId | None = None


class RpcResponse(Record):
    """The result of a call."""

    id: RequestId
    result: object


class RpcErrorResponse(Record):
    """The error of a call; without ``id`` the call could not be parsed."""

    id: RequestId | None
    error: RpcError


RpcMessage = RpcRequest | RpcResponse | RpcErrorResponse


class FrameError(Exception):
    """A frame is not a message; ``failure`` is the response to it."""

    def __init__(self, error: RpcError, request: RequestId | None = None) -> None:
        super().__init__(error.message)
        self.failure = RpcErrorResponse(id=request, error=error)


def parse_frame(frame: str | bytes) -> RpcMessage:
    """
    Parse a frame.

    :raises FrameError: if it is not a message
    """
    raw = frame.encode("utf-8", "surrogatepass") if isinstance(frame, str) else frame
    if len(raw) > MAX_FRAME_BYTES:
        raise FrameError(
            RpcError.from_code(
                ErrorCode.INVALID_REQUEST, f"the message is larger than {MAX_FRAME_BYTES >> 20} MB"
            )
        )
    try:
        found = parse_json(raw)
    except ValueError as error:
        raise FrameError(
            RpcError.from_code(ErrorCode.PARSE, f"the message is not JSON: {error}")
        ) from None
    if isinstance(found, list):
        raise _invalid_request("batches are not supported: send the requests one by one", None)
    if not isinstance(found, dict):
        raise _invalid_request("a message is a JSON object", None)
    return _parse_message(cast("dict[str, object]", found))


def _parse_message(found: dict[str, object]) -> RpcMessage:
    given = found.get("id")
    id_ = given if isinstance(given, (str, int)) and not isinstance(given, bool) else None
    if found.get("jsonrpc") != JSONRPC_VERSION:
        raise _invalid_request('a message says "jsonrpc": "2.0"', id_)
    if "method" in found:
        return _parse_request(found, id_)
    if id_ is not None and "result" in found and "error" not in found:
        return RpcResponse(id=id_, result=found["result"])
    if isinstance(found.get("error"), dict) and "result" not in found:
        return RpcErrorResponse(
            id=id_, error=RpcError.from_fields(cast("dict[str, object]", found["error"]))
        )
    raise _invalid_request("a request names a method, a response has a result or an error", id_)


def _parse_request(found: dict[str, object], id_: RequestId | None) -> RpcRequest:
    method, params = found["method"], found.get("params", {})
    if not isinstance(method, str):
        raise _invalid_request("method is a text", id_)
    if "id" in found and id_ is None:
        raise _invalid_request("id is a text or a whole number", None)
    if not isinstance(params, dict):
        raise FrameError(
            RpcError.from_code(
                ErrorCode.INVALID_PARAMS, "params is an object: arguments go by their names"
            ),
            id_,
        )
    return RpcRequest(method=method, params=cast("dict[str, object]", params), id=id_)


def _invalid_request(message: str, id_: RequestId | None) -> FrameError:
    return FrameError(RpcError.from_code(ErrorCode.INVALID_REQUEST, message), id_)


def write_message(message: RpcMessage) -> str:
    """Return a message as one line of text, without a line break."""
    return dump_json({"jsonrpc": JSONRPC_VERSION, **_message_fields(message)})


def write_event(params: JsonFields) -> str:
    """Return an event notification as one line of text."""
    return dump_json({"jsonrpc": JSONRPC_VERSION, "method": EVENT_METHOD, "params": params})


def _message_fields(message: RpcMessage) -> dict[str, object]:
    match message:
        case RpcRequest():
            head = {} if message.id is None else {"id": message.id}
            return {**head, "method": message.method, "params": message.params}
        case RpcResponse():
            return {"id": message.id, "result": message.result}
        case RpcErrorResponse():
            return {"id": message.id, "error": message.error.fields}
