"""The output of a command in files of a bounded size: its beginning, and its end."""

from __future__ import annotations

import os

from clew.sandbox.supervisor.order import OUTPUT_PREFIX

#: The last bytes of any output that can be read.
LEAST_TAIL = 64 * 1024


def split_limit(limit: int) -> tuple[int, int]:
    """Return the size of the first file, and of each later one, for so many bytes to be kept."""
    head = limit // 2
    return head, max(limit - head, LEAST_TAIL)


class OutputFiles:
    """
    Writer of the output: ``out.0`` keeps its beginning, the two newest other files its end.

    The name of a file is the position of its first byte.
    """

    def __init__(self, limit: int) -> None:
        self._head, self._part = split_limit(limit)
        self.size = 0
        #: False once a part could not be written: the disk is full.
        self.is_whole = True
        #: Where the newest file begins, and the one before it; 0 is the beginning.
        self._start = self._former = 0
        self._file, self._room = self._open(0), self._head

    def _open(self, position: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        return os.open(f"{OUTPUT_PREFIX}{position}", flags, 0o600)

    def add_output(self, data: bytes) -> None:
        """Write a piece of output."""
        view = memoryview(data)
        while view:
            if not self._room:
                self._begin_part()
            piece = view[: self._room]
            self._write(piece)
            self.size += len(piece)
            self._room -= len(piece)
            view = view[len(piece) :]

    def _begin_part(self) -> None:
        os.close(self._file)
        if self._former:
            os.unlink(f"{OUTPUT_PREFIX}{self._former}")
        self._former, self._start = self._start, self.size
        self._file, self._room = self._open(self.size), self._part

    def _write(self, piece: memoryview) -> None:
        try:
            done = os.write(self._file, piece)
        except OSError:
            done = 0
        if done < len(piece):
            self.is_whole = False
            # What follows stays at its position.
            os.lseek(self._file, len(piece) - done, os.SEEK_CUR)
