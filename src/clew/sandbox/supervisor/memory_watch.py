"""The memory of a command, looked at beside everything else: it may take seconds."""

from __future__ import annotations

import _thread
import os
import time

from clew.sandbox.usage_limits import find_memory_excess

#: Seconds between two looks, while something changes and else.
_PERIOD, _QUIET_PERIOD = 0.1, 0.5
#: Looks without a change after which they become rarer.
_QUIET_AFTER = 20


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
        seen, quiet_looks = 0, 0
        while self.reason is None:
            time.sleep(_PERIOD if quiet_looks < _QUIET_AFTER else _QUIET_PERIOD)
            self.reason, used = find_memory_excess(root, memory=self._limit)
            quiet_looks = quiet_looks + 1 if used >> 23 == seen else 0
            seen = used >> 23
        os.write(wake, b"\0")
