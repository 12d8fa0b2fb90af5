"""
Frames over standard input and output, one per line.

Threads read and write, since event loops do not support files, terminals and pipes alike.
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

#: Lines that were read and not consumed yet.
_MAX_UNREAD_LINES = 64
_DISCARD_CHUNK = 64 * 1024


class StdioClosed(Exception):
    """The reader has closed its end."""


class StdioTransport:
    """Line transport over standard input and output; its threads end with the process."""

    def __init__(self) -> None:
        # Duplicates: Python cannot close a file that a thread is still reading or writing.
        self._source: BinaryIO = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        self._sink: BinaryIO = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_MAX_UNREAD_LINES)
        self._frames: SimpleQueue[tuple[str, asyncio.Future[None]]] = SimpleQueue()
        for work in (self._read_lines, self._write_frames):
            threading.Thread(target=work, name=f"pipe{work.__name__}", daemon=True).start()

    async def iter_frames(self) -> AsyncIterator[bytes]:
        """Yield each line that is not blank; one over the limit is cut right after it."""
        while (line := await self._lines.get()) is not None:
            if line.strip():
                yield line.rstrip(b"\r\n")

    async def send(self, frame: str) -> None:
        """
        Write a line, and wait until it is written.

        :raises StdioClosed: if the reader has closed its end
        """
        done: asyncio.Future[None] = self._loop.create_future()
        self._frames.put((frame, done))
        await done

    def _read_lines(self) -> None:
        while line := self._source.readline(MAX_FRAME_BYTES + 2):
            whole = line.endswith(b"\n")
            self._enqueue_line(line)
            while not whole and (rest := self._source.readline(_DISCARD_CHUNK)):
                whole = rest.endswith(b"\n")
        self._enqueue_line(None)

    def _enqueue_line(self, line: bytes | None) -> None:
        putting = self._lines.put(line)
        try:
            asyncio.run_coroutine_threadsafe(putting, self._loop).result()
        except RuntimeError:
            putting.close()  # the loop has ended, the process is about to

    def _write_frames(self) -> None:
        while True:
            frame, done = self._frames.get()
            error: OSError | None = None
            try:
                self._sink.write(f"{frame}\n".encode())
                self._sink.flush()
            except OSError as failed:
                error = failed
            self._loop.call_soon_threadsafe(_resolve_future, done, error)


def _resolve_future(done: asyncio.Future[None], error: OSError | None) -> None:
    if done.done():
        return  # its sender was cancelled
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(StdioClosed(str(error)))
