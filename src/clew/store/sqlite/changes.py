"""Change listeners of a store, and how they are woken."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from clew.errors import StoreError


class _Listener:
    """Pending changes of one listener, guarded by the lock of ``SqliteChangeFeed``."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._woken = False
        self.topics: set[str] = set()
        self.anything = True

    def wake(self) -> None:
        """Let ``wait`` return; from any thread, and once until the next ``take_pending``."""
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # its loop is closed: nobody listens
                self._loop.call_soon_threadsafe(self._news.set)

    async def wait(self) -> None:
        await self._news.wait()

    def take_pending(self) -> frozenset[str] | None:
        """Return and clear the pending changes."""
        self._news.clear()
        self._woken = False
        news = None if self.anything else frozenset(self.topics)
        self.topics.clear()
        self.anything = False
        return news


class SqliteChangeFeed:
    """Listeners of one store, in any number of event loops."""

    def __init__(self, on_listen: Callable[[], None]) -> None:
        """Store ``on_listen``, which is called whenever a listener is added."""
        self._on_listen = on_listen
        self._lock = threading.Lock()
        self._listeners: set[_Listener] = set()
        self._closed = False
        self._error: StoreError | None = None

    @property
    def has_listeners(self) -> bool:
        """Return true if there are listeners."""
        return bool(self._listeners)

    def publish(self, topics: frozenset[str] | None) -> None:
        """Notify all listeners; from any thread."""
        with self._lock:
            for listener in self._listeners:
                if topics is None:
                    listener.anything = True
                else:
                    listener.topics |= topics
                listener.wake()

    def close(self, error: StoreError | None = None) -> None:
        """End every listener, present and future, with ``error`` if given."""
        with self._lock:
            self._closed, self._error = True, error
            for listener in self._listeners:
                listener.wake()

    async def listen(self) -> AsyncIterator[frozenset[str] | None]:
        """Iterate over the items of ``Store.watch_changes``, until the store closes."""
        listener = _Listener()
        with self._lock:
            self._listeners.add(listener)
            listener.wake()
        self._on_listen()
        try:
            while news := await self._next_item(listener):
                yield news[0]
        finally:
            with self._lock:
                self._listeners.discard(listener)
        if self._error is not None:
            raise self._error

    async def _next_item(self, listener: _Listener) -> tuple[frozenset[str] | None] | None:
        """Wait for the next item; return ``None`` after the last one."""
        await listener.wait()
        with self._lock:
            return None if self._closed else (listener.take_pending(),)
