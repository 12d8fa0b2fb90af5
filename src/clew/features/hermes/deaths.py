"""
Count of the times that a plugin ended the process: by ``os._exit``, a signal, a crash of its code.

A process cannot stop that. While code of a plugin runs, a file says so; the next process finds
those of processes that are gone.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

#: So many deaths within a day, and the plugin is not loaded again.
MAX_DEATHS: Final = 3
_DAY: Final = 86_400
_IDLE, _RUNNING = b"0", b"1"
_GUARD: Final = "guard"


class DeathLog:
    """The deaths of processes in which one plugin ran."""

    def __init__(self, folder: Path, slug: str) -> None:
        self._folder, self._slug = folder, slug
        #: A line for each death. Without it, the plugin is loaded again.
        self.file = folder / f"{slug}.deaths"
        self._marker: int | None = None
        self._path = folder / f"{slug}.{os.getpid()}-{id(self):x}.running"
        self._depth = 0
        self._lock = threading.Lock()

    def count(self) -> int:
        """Return the deaths of the last day, with those that have not been counted yet."""
        for path in self._folder.glob(f"{self._slug}.*.running"):
            self._settle(path)
        since = time.time() - _DAY
        return sum(1 for line in self._read() if float(line.split()[0]) > since)

    def was_guard(self) -> bool:
        """Return whether the plugin decided about tool calls when it ended a process."""
        return any(line.endswith(_GUARD) for line in self._read())

    def open(self) -> None:
        """Begin to note when code of the plugin runs."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._marker = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            fcntl.flock(self._marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(self._marker, _IDLE, 0)
            atexit.register(self.close)

    def mark_guard(self) -> None:
        """Note that the plugin decides about tool calls."""
        if self._marker is not None:
            os.pwrite(self._marker, _GUARD.encode(), 1)

    def begin(self) -> None:
        """Note that code of the plugin runs."""
        with self._lock:
            self._depth += 1
            if self._depth == 1 and self._marker is not None:
                os.pwrite(self._marker, _RUNNING, 0)

    def end(self) -> None:
        """Note that it has returned."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._marker is not None:
                os.pwrite(self._marker, _IDLE, 0)

    def close(self) -> None:
        """End with the process, whatever still runs."""
        with self._lock:
            marker, self._marker = self._marker, None
        if marker is not None:
            atexit.unregister(self.close)
            self._path.unlink(missing_ok=True)
            os.close(marker)

    def _read(self) -> list[str]:
        if not self.file.is_file():
            return []
        return [line for line in self.file.read_text(encoding="utf-8").splitlines() if line]

    def _settle(self, path: Path) -> None:
        """Count the death that a file tells of, unless its process lives."""
        with suppress(OSError):
            marker = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
                told = os.pread(marker, 16, 0)
                path.unlink(missing_ok=True)
            finally:
                os.close(marker)
            if told.startswith(_RUNNING):
                line = f"{time.time():.0f} {told[1:].decode(errors='replace')}".strip()
                with self.file.open("a", encoding="utf-8") as file:
                    file.write(f"{line}\n")
