"""The pipe with the output of a command, read without a transport of the event loop."""

from __future__ import annotations

import asyncio
import os


class OutputPipe:
    """
    A pipe whose reading end is closed here, once.

    A transport of uvloop closes the descriptor of a file that it was given twice. In between, a
    thread may have got the same number for another file, such as the database.
    """

    def __init__(self) -> None:
        self._ours, self.theirs = os.pipe()
        os.set_blocking(self._ours, False)

    async def read(self, most: int) -> bytes:
        """Return what there is; nothing once all who could write have closed it."""
        await self._wait_for_data()
        try:
            return os.read(self._ours, most)
        except BlockingIOError:
            return await self.read(most)

    async def _wait_for_data(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._ours, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(self._ours)

    def close(self) -> None:
        os.close(self._ours)
