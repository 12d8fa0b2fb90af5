"""Queue from the engine thread to the terminal thread."""

from __future__ import annotations

import os
import queue
import select
import sys
from contextlib import suppress
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class SelectableQueue(Generic[T]):
    """Queue that can be waited for together with the keyboard; any thread may put."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[T] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._reader)
        os.close(self._writer)

    def put(self, item: T) -> None:
        self._items.put(item)
        self.wake()

    def wake(self) -> None:
        """Wake the waiting thread; safe in a signal handler."""
        with suppress(BlockingIOError):  # the pipe is full of wake-ups already
            os.write(self._writer, b".")

    def wait(self, keyboard: int | None) -> bool:
        """Wait for an item or for input; return ``True`` if there is keyboard input."""
        if sys.platform == "win32":
            os.read(self._reader, 1)
            return False
        sources = [self._reader] if keyboard is None else [self._reader, keyboard]
        ready, _, _ = select.select(sources, [], [])
        if self._reader in ready:
            os.read(self._reader, 65536)
        return keyboard in ready

    def take_all(self) -> list[T]:
        """Return all items without waiting."""
        found: list[T] = []
        while True:
            try:
                found.append(self._items.get_nowait())
            except queue.Empty:
                return found
