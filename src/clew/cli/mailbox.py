"""What the engine's thread tells the thread that talks to the person."""

from __future__ import annotations

import os
import queue
import select
import sys
from contextlib import suppress
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """A queue that can be waited for together with the keyboard; any thread may put."""

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
        self.poke()

    def poke(self) -> None:
        """End the wait of the other side; safe in a signal handler."""
        with suppress(BlockingIOError):  # it is full of pokes already
            os.write(self._writer, b".")

    def wait(self, keyboard: int | None) -> bool:
        """Wait until something is here; whether something was typed."""
        if sys.platform == "win32":
            os.read(self._reader, 1)
            return False
        sources = [self._reader] if keyboard is None else [self._reader, keyboard]
        ready, _, _ = select.select(sources, [], [])
        if self._reader in ready:
            os.read(self._reader, 65536)
        return keyboard in ready

    def take(self) -> list[T]:
        """Everything that is here."""
        found: list[T] = []
        while True:
            try:
                found.append(self._items.get_nowait())
            except queue.Empty:
                return found
