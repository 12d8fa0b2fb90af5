"""Captured requests, and a log of them that survives a crash."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.testing.provider.request import WireFormat

RequestOutcome: TypeAlias = Literal[
    "open",  # in progress
    "answered",  # sent completely, as scripted; errors with a status count
    "cut",  # cut as scripted
    "client_gone",  # the client closed first
    "server_closed",  # the provider was closed first
    "refused",  # the request broke the protocol
    "script_failed",  # the script raised
]
SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie", "set-cookie"}
)


@dataclass(kw_only=True, slots=True)
class CapturedRequest:
    """One request and its outcome; the only mutable record here, until it has ended."""

    number: int
    format: WireFormat | None
    path: str
    headers: Mapping[str, str]
    body: bytes
    json: dict[str, Any] | None
    stream: bool
    #: Monotonic seconds, comparable between processes of one machine, and wall-clock seconds.
    started: float
    ended: float | None = None
    ended_wall: float | None = None
    outcome: RequestOutcome = "open"
    #: The kind of reply, such as ``Text``.
    reply: str | None = None
    #: The text of the reply and the ids of its tool calls, even if sent incompletely.
    text: str | None = None
    call_ids: tuple[str, ...] = ()
    status: int | None = None


def remove_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in SECRET_HEADERS}


def append_log(path: Path, captured: CapturedRequest) -> None:
    """Append an ended request: one line in one write, so that it survives any crash."""
    line = json.dumps(serialize_capture(captured)).encode() + b"\n"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


def serialize_capture(captured: CapturedRequest) -> dict[str, object]:
    """Serialize a record for the log; ``body`` is the raw text, ``json`` is left out."""
    fields = {name: getattr(captured, name) for name in CapturedRequest.__slots__ if name != "json"}
    return {**fields, "body": captured.body.decode(errors="surrogateescape")}


def parse_capture(record: Mapping[str, Any]) -> CapturedRequest:
    """Parse a record serialised by :func:`serialize_capture`."""
    body = str(record["body"]).encode(errors="surrogateescape")
    call_ids = tuple(record["call_ids"])
    fields: dict[str, Any] = {**record, "body": body, "call_ids": call_ids}
    return CapturedRequest(**fields, json=parse_object(body))


def read_log(path: Path) -> list[CapturedRequest]:
    """Return the requests in the log, in the order in which they ended; none without a log."""
    if not path.exists():
        return []
    return [parse_capture(json.loads(line)) for line in path.read_text().splitlines()]


def parse_object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body, ``None`` if there is none."""
    try:
        value: object = json.loads(body)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
