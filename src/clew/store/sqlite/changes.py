"""Who wants to know what changed, and how they are woken."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from clew.errors import StoreError


class _Listener:
    """What one listener has not seen yet; touched only in its loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._topics: set[str] = set()
        self._anything = True
        self._end: StoreError | bool = False
        self._news = asyncio.Event()
        self._news.set()

    def add(self, topics: frozenset[str] | None) -> None:
        if topics is None:
            self._anything = True
        else:
            self._topics |= topics
        self._news.set()

    def end(self, error: StoreError | None) -> None:
        self._end = error or True
        self._news.set()

    async def take(self) -> frozenset[str] | None:
        """Wait for news; :raises StopAsyncIteration: when the store is closed."""
        await self._news.wait()
        if isinstance(self._end, Exception):
            raise self._end
        if self._end:
            raise StopAsyncIteration
        self._news.clear()
        news = None if self._anything else frozenset(self._topics)
        self._topics.clear()
        self._anything = False
        return news


class Changes:
    """The listeners of one store, in any number of loops."""

    def __init__(self, on_first: Callable[[], None]) -> None:
        """``on_first`` is called when somebody begins to listen."""
        self._listeners: set[_Listener] = set()
        self._lock = threading.Lock()
        self._on_first = on_first
        self._closed: tuple[StoreError | None] | None = None

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def publish(self, topics: frozenset[str] | None) -> None:
        """Tell all listeners, from any thread."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                listener.loop.call_soon_threadsafe(listener.add, topics)

    def close(self, error: StoreError | None = None) -> None:
        """End all listeners: with ``error``, or as the end of their iteration."""
        with self._lock:
            self._closed = (error,)
            listeners = list(self._listeners)
        for listener in listeners:
            with contextlib.suppress(RuntimeError):
                listener.loop.call_soon_threadsafe(listener.end, error)

    async def listen(self) -> AsyncIterator[frozenset[str] | None]:
        """The items of ``Store.changes``."""
        listener = _Listener()
        with self._lock:
            self._listeners.add(listener)
            closed = self._closed
        if closed:
            listener.end(closed[0])
        self._on_first()
        try:
            while True:
                try:
                    news = await listener.take()
                except StopAsyncIteration:
                    return
                yield news
        finally:
            with self._lock:
                self._listeners.discard(listener)
