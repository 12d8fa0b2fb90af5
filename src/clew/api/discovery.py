"""
Discovery: a server publishes its address in its home, for programs of the same person.

``run/api.json`` holds its URL, its process and the name of this run, and is locked as long as
the server runs. A server that was killed leaves the file behind without the lock, and another
program may get its port or its process id: neither says that it runs.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from clew.distribution import VERSION
from clew.file_locks import lock_descriptor, try_lock_descriptor
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_FILE_NAME = "api.json"


class ServerAddress(Record):
    """The address of a server that ran in a home and may still be running."""

    #: ``http://HOST:PORT``.
    url: str
    #: The name of the run: each run has its own.
    name: str
    #: The process id; ``None`` if the file has none.
    pid: int | None = None
    #: When it started, in ISO 8601, and its version; ``None`` if the file does not say.
    started_at: str | None = None
    version: str | None = None
    #: Whether it held the lock of its file when this was read.
    is_running: bool = False

    @property
    def websocket_url(self) -> str:
        """Return the URL of its WebSocket."""
        return f"{self.url.replace('http', 'ws', 1)}/api/ws"


@contextmanager
def advertise(home: Path, *, url: str, name: str) -> Generator[None]:
    """Publish the address of this server for the duration of the block."""
    file = home / "run" / _FILE_NAME
    made = file.with_name(f".{_FILE_NAME}.{os.getpid()}")
    text = _describe_server(url, name)
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    # It stays open for the block: its end unlocks the file.
    with open(descriptor, "w", encoding="utf-8") as stream:  # noqa: PTH123  (a descriptor)
        lock_descriptor(descriptor)
        stream.write(text)
        stream.flush()
        made.replace(file)
        try:
            yield
        finally:
            _remove_own(file, text)


def _remove_own(file: Path, text: str) -> None:
    """Remove the file, unless a later server has put its own in the place."""
    with suppress(OSError):
        if file.read_text(encoding="utf-8") == text:
            file.unlink()


def _describe_server(url: str, name: str) -> str:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    described = {"url": url, "name": name, "pid": os.getpid(), "started_at": started}
    return json.dumps({**described, "version": VERSION})


def discover_server(home: Path) -> ServerAddress | None:
    """Return the address that was published last, if any, and whether its server still runs."""
    try:
        with (home / "run" / _FILE_NAME).open(encoding="utf-8") as stream:
            told: object = json.load(stream)
            is_running = not try_lock_descriptor(stream.fileno(), shared=True)
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict):
        return None
    return _read_address(cast("dict[str, object]", told), is_running=is_running)


def _read_address(fields: dict[str, object], *, is_running: bool) -> ServerAddress | None:
    url, name, pid = (fields.get(each) for each in ("url", "name", "pid"))
    if not (isinstance(url, str) and isinstance(name, str)):
        return None
    started_at, version = (fields.get(each) for each in ("started_at", "version"))
    return ServerAddress(
        url=url,
        name=name,
        pid=pid if isinstance(pid, int) else None,
        started_at=started_at if isinstance(started_at, str) else None,
        version=version if isinstance(version, str) else None,
        is_running=is_running,
    )
