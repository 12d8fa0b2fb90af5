"""The memory of a command, looked at beside everything else: it may take seconds."""

from __future__ import annotations

import _thread
import os
import time

from clew.sandbox.supervisor.look_pace import PERIOD, LookPace
from clew.sandbox.usage_limits import find_memory_excess


class MemoryWatch:
    """Watcher of the memory that one command uses."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        #: The reason to stop the command, as soon as there is one.
        self.reason: str | None = None

    def start(self, root: int, wake: int) -> None:
        """Look again and again, in a thread; write to ``wake`` when there is a reason."""
        _thread.start_new_thread(self._run, (root, wake))

    def _run(self, root: int, wake: int) -> None:
        pace, pause = LookPace(0), PERIOD
        while self.reason is None:
            time.sleep(pause)
            self.reason, used = find_memory_excess(root, memory=self._limit)
            pause = pace.note(used >> 23)
        os.write(wake, b"\0")
