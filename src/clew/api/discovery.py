"""
Discovery: a server publishes its address in its home, for programs of the same person.

``run/api.json`` holds its URL, its process and the name of this run. A server that was
killed leaves the file behind, and another program may get its port: so a client must verify
that name.
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

_FILE_NAME = "api.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerAddress:
    """The address of a server that ran in a home and may still be running."""

    #: ``http://HOST:PORT``.
    url: str
    #: The name of the run: each run has its own.
    name: str
    #: The process id; ``None`` if the file has none.
    pid: int | None = None

    @property
    def websocket_url(self) -> str:
        """Return the URL of its WebSocket."""
        return f"{self.url.replace('http', 'ws', 1)}/api/ws"

    def is_process_gone(self) -> bool:
        """Return whether its process is known to have ended."""
        if self.pid is None:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # it belongs to another user
        return False


@contextmanager
def advertise(home: Path, *, url: str, name: str) -> Generator[None]:
    """Publish the address of this server for the duration of the block."""
    file = home / "run" / _FILE_NAME
    made = file.with_name(f".{_FILE_NAME}.{os.getpid()}")
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


def discover_server(home: Path) -> ServerAddress | None:
    """Return the address that was published last, if any."""
    try:
        told: object = json.loads((home / "run" / _FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict):
        return None
    fields = cast("dict[str, object]", told)
    url, name, pid = (fields.get(each) for each in ("url", "name", "pid"))
    if not (isinstance(url, str) and isinstance(name, str)):
        return None
    return ServerAddress(url=url, name=name, pid=pid if isinstance(pid, int) else None)
