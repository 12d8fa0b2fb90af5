"""The size of a workspace, looked at beside everything else: it may take seconds."""

from __future__ import annotations

import _thread
import os
import sys
import time

from clew.core.byte_size import format_size
from clew.sandbox.folder_size import measure_folder
from clew.sandbox.process_tree import measure_unnamed_files

#: Seconds between two looks, and their least multiple of the time that one takes. Without a change
#: looks become rarer.
_PERIOD = 0.5
_LONGEST_PERIOD = 5.0
_SHARE = 20
#: Bytes by which a workspace that is too large may still grow, so that one can tidy up in it.
_SLACK = 16 * 1024 * 1024


class DiskWatch:
    """Watcher of the workspace of one command."""

    def __init__(self, folder: str, limit: int) -> None:
        self._folder, self._limit = folder, limit
        #: The reason to stop the command, as soon as there is one.
        self.reason: str | None = None
        self._free = self._free_before = self._read_free()
        total, doubt = self.measure(None)
        self._tolerated = limit
        if total > limit:
            self._tolerated = (limit if doubt else total) + _SLACK
        self._total = total

    def start(self, root: int, wake: int) -> None:
        """Look again and again, in a thread; write to ``wake`` when there is a reason."""
        _thread.start_new_thread(self._run, (root, wake))

    def _run(self, root: int, wake: int) -> None:
        pause = _PERIOD
        while self.reason is None:
            self._sleep(pause)
            before, begun = self._total, time.monotonic()
            self._free = self._read_free()
            self._total, doubt = self.measure(root)
            if self._total > self._tolerated:
                self.reason = (
                    f"stopped: the workspace holds more than {format_size(self._limit)}{doubt}"
                )
            pause = _PERIOD if self._total != before else min(2 * pause, _LONGEST_PERIOD)
            pause = max(pause, _SHARE * (time.monotonic() - begun))
        os.write(wake, b"\0")

    def _sleep(self, seconds: float) -> None:
        """Sleep, unless the disk loses more than may still be used."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(_PERIOD)
            if self._free - self._read_free() > max(self._tolerated - self._total, _SLACK):
                return

    def _read_free(self) -> int:
        try:
            state = os.statvfs(self._folder)
        except OSError:
            return 0
        return state.f_bfree * state.f_frsize

    def measure(self, root: int | None) -> tuple[int, str]:
        """Return the bytes of the workspace, and a clause if they cannot be known."""
        unnamed = 0 if root is None else measure_unnamed_files(root)
        try:
            place = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                return unnamed + measure_folder(place, at_most=sys.maxsize), ""
            finally:
                os.close(place)
        except OSError as error:
            # What the disk has lost since the beginning may be in the part that is hidden.
            lost = max(0, self._free_before - self._free)
            path = str(error.filename)[:200]
            doubt = f", or cannot be measured ({path!r}: {error.strerror})"
            return self._limit + 1 + lost, doubt

    def find_notice(self) -> str | None:
        """Return what to say after the command if the workspace is too large."""
        self._free = self._read_free()
        total, doubt = self.measure(None)
        if total <= self._limit:
            return None
        return (
            f"the workspace holds more than {format_size(self._limit)}{doubt}: remove files "
            "that are not needed"
        )
