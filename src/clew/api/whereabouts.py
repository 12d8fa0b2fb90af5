"""
Whereabouts: a server tells in its home where it is, for the programs of the same person.

``run/api.json`` holds its URL, its process and the name of this run. A server that was killed
leaves the file behind, and another program may get its port: so whoever connects asks for that
name.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_FILE = "api.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A server that ran in a home, and may still run."""

    #: ``http://HOST:PORT``.
    url: str
    #: Of the run: another one has another name.
    name: str
    #: Of its process; ``None`` where the file does not tell.
    pid: int | None = None

    @property
    def socket(self) -> str:
        """The URL of its WebSocket."""
        return f"{self.url.replace('http', 'ws', 1)}/api/ws"


@contextmanager
def announced(home: Path, *, url: str, name: str) -> Generator[None]:
    """Say where this server is, for as long as the block lasts."""
    file = home / "run" / _FILE
    made = file.with_name(f".{_FILE}.{os.getpid()}")
    text = json.dumps({"url": url, "name": name, "pid": os.getpid()})
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as stream:  # noqa: PTH123  (a descriptor)
        stream.write(text)
    made.replace(file)
    try:
        yield
    finally:
        with suppress(OSError):
            if file.read_text(encoding="utf-8") == text:
                file.unlink()


def find(home: Path) -> Found | None:
    """The server that told last where it is."""
    try:
        told: object = json.loads((home / "run" / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict):
        return None
    fields = cast("dict[str, object]", told)
    url, name, pid = (fields.get(each) for each in ("url", "name", "pid"))
    if not (isinstance(url, str) and isinstance(name, str)):
        return None
    return Found(url=url, name=name, pid=pid if isinstance(pid, int) else None)
