"""The logs of a campaign: a JSON line per record, written at once, by processes that are killed."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T", bound="Record")


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """Event with its process and time (monotonic seconds of this machine)."""

    pid: int = field(default_factory=os.getpid)
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, kw_only=True, slots=True)
class Started(Record):
    """A process was forked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready(Record):
    """Its engine runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Handed(Record):
    """A platform has a message for us and will deliver it until it is acknowledged."""

    key: str
    text: str
    rule: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Acknowledged(Record):
    """The message was accepted."""

    key: str
    inbox_id: str
    conversation: str
    duplicate: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended(Record):
    """The front was told what became of the message."""

    key: str
    outcome: str
    turn: str | None
    turn_outcome: str | None
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumed(Record):
    """The engine took up a turn that another process had begun."""

    turn: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Took(Record):
    """The engine took a turn: a new one, or one that it or another process had begun."""

    turn: str
    resumed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowed(Record):
    """The person says yes to a call."""

    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Killed(Record):
    """The process is about to send itself a signal."""

    place: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect(Record):
    """A tool did what it does."""

    what: str
    tool: str
    effect: str
    #: With which an idempotent tool would be asked to do it again.
    key: str


KINDS: dict[str, type[Record]] = {
    kind.__name__: kind
    for kind in (
        Started,
        Ready,
        Handed,
        Acknowledged,
        Ended,
        Resumed,
        Took,
        Allowed,
        Killed,
        Effect,
    )
}


class Log:
    """A file of records; several processes may append to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, record: Record, *, sync: bool = False) -> None:
        """Append; once this returns the record outlives the process, with ``sync`` the machine."""
        line = json.dumps([type(record).__name__, asdict(record)]).encode() + b"\n"
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, line)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)

    def read(self) -> list[Record]:
        if not self.path.exists():
            return []
        return [_record(line) for line in self.path.read_text().splitlines()]

    def of(self, kind: type[T]) -> list[T]:
        """The records of one kind, in order."""
        return [record for record in self.read() if isinstance(record, kind)]


def _record(line: str) -> Record:
    fields: dict[str, Any]
    name, fields = json.loads(line)
    return KINDS[name](**fields)
