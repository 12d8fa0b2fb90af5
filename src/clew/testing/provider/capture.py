"""What a test may know about the requests that came in, and the log that outlives it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.testing.provider.request import Format

Outcome: TypeAlias = Literal[
    "open",  # under way
    "answered",  # sent whole, as the script said; failures with a status count
    "cut",  # broken off as the script said
    "client_gone",  # the client closed first
    "server_closed",  # the provider was closed first
    "refused",  # the request broke the protocol
    "script_failed",  # the script raised
]
SECRETS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie", "set-cookie"}
)


@dataclass(kw_only=True, slots=True)
class Captured:
    """One request and what became of it; the only record here that changes, until it has ended."""

    number: int
    format: Format | None
    path: str
    headers: Mapping[str, str]
    body: bytes
    json: dict[str, Any] | None
    stream: bool
    #: Monotonic seconds, comparable between the processes of one machine, and wall seconds.
    started: float
    started_wall: float
    ended: float | None = None
    ended_wall: float | None = None
    outcome: Outcome = "open"
    #: The kind of reply, such as ``Text``.
    reply: str | None = None
    #: The text of the reply and the ids of its tool calls, also if they did not arrive in full.
    text: str | None = None
    call_ids: tuple[str, ...] = ()
    status: int | None = None


def without_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in SECRETS}


def append_log(path: Path, captured: Captured) -> None:
    """Add a request that ended: one line, written at once, so that it survives any crash."""
    line = json.dumps(as_json(captured)).encode() + b"\n"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


def as_json(captured: Captured) -> dict[str, object]:
    """A record as the log keeps it; ``body`` is the raw text, ``json`` is left to the reader."""
    fields = {name: getattr(captured, name) for name in Captured.__slots__ if name != "json"}
    return {**fields, "body": captured.body.decode(errors="surrogateescape")}


def from_json(record: Mapping[str, Any]) -> Captured:
    """The reverse of :func:`as_json`."""
    body = str(record["body"]).encode(errors="surrogateescape")
    call_ids = tuple(record["call_ids"])
    fields: dict[str, Any] = {**record, "body": body, "call_ids": call_ids}
    return Captured(**fields, json=parse_json(body))


def read_log(path: Path) -> list[Captured]:
    """The requests in the log, in the order in which they ended; none if there is no log yet."""
    if not path.exists():
        return []
    return [from_json(json.loads(line)) for line in path.read_text().splitlines()]


def parse_json(body: bytes) -> dict[str, Any] | None:
    """The object in a body, ``None`` if there is none."""
    try:
        value: object = json.loads(body)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
