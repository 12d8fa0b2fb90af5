"""
The two ends of a pipe, a frame in each line.

Files, terminals and pipes are all read and written in threads: event loops take only some of them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, BinaryIO

from clew.wire.framing import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

#: Lines that were read and nobody has taken.
_AHEAD = 64
_REST = 64 * 1024


class PipeClosed(Exception):
    """Nobody reads any more."""


class Pipe:
    """Lines of standard input and to standard output; its threads end with the process."""

    def __init__(self) -> None:
        # Files of their own: what a thread still reads or writes keeps Python from closing its own.
        self._source: BinaryIO = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        self._sink: BinaryIO = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
        self._frames: SimpleQueue[tuple[str, asyncio.Future[None]]] = SimpleQueue()
        for work in (self._read, self._write):
            threading.Thread(target=work, name=f"pipe{work.__name__}", daemon=True).start()

    async def frames(self) -> AsyncIterator[bytes]:
        """Every line that is not blank; one that is too long is cut right after its limit."""
        while (line := await self._lines.get()) is not None:
            if line.strip():
                yield line.rstrip(b"\r\n")

    async def send(self, frame: str) -> None:
        """
        Write a line, and wait until it is written.

        :raises PipeClosed: if nobody reads any more
        """
        done: asyncio.Future[None] = self._loop.create_future()
        self._frames.put((frame, done))
        await done

    def _read(self) -> None:
        while line := self._source.readline(MAX_FRAME_BYTES + 2):
            whole = line.endswith(b"\n")
            self._hand_over(line)
            while not whole and (rest := self._source.readline(_REST)):
                whole = rest.endswith(b"\n")
        self._hand_over(None)

    def _hand_over(self, line: bytes | None) -> None:
        putting = self._lines.put(line)
        try:
            asyncio.run_coroutine_threadsafe(putting, self._loop).result()
        except RuntimeError:
            putting.close()  # the loop has ended, and the process will

    def _write(self) -> None:
        while True:
            frame, done = self._frames.get()
            error: OSError | None = None
            try:
                self._sink.write(f"{frame}\n".encode())
                self._sink.flush()
            except OSError as failed:
                error = failed
            self._loop.call_soon_threadsafe(_settle, done, error)


def _settle(done: asyncio.Future[None], error: OSError | None) -> None:
    if done.done():
        return  # its sender was cancelled
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(PipeClosed(str(error)))
