"""Change notifications by LISTEN, and the listeners of this process."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from typing import TYPE_CHECKING, Self

from clew.store.contract import Topics
from clew.store.postgres.persistent_connection import PersistentConnection
from clew.store.postgres.tx import CHANNEL, EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from clew.store.postgres.dsn import Connection, Dsn
    from clew.store.postgres.limits import Limits

_LISTEN = f"LISTEN {CHANNEL}".encode()


class ChangeListener:
    """
    Endless iterator of changed topics, merged until the next step.

    ``None`` ("anything may have changed") comes first, after each gap in the connection,
    and when nothing was received for ``poll`` seconds. Ends when the store closes.
    Cancelling a step loses nothing.
    """

    def __init__(self, poll: float) -> None:
        self._poll = poll
        self._loop = asyncio.get_running_loop()
        self._topics: set[str] = set()
        self._here: set[str] = set()
        self._everything = True
        self._ended = False
        self._news = asyncio.Event()
        self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> frozenset[str] | None:
        if not self._news.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._news.wait()
        if self._ended:
            raise StopAsyncIteration
        return self._take_pending()

    def push_topics(self, topics: AbstractSet[str] | None, *, here: bool = False) -> None:
        """Add changed topics, from any thread; ``here``: this process notified them."""
        with contextlib.suppress(RuntimeError):
            # A closed loop has no listener any more.
            self._loop.call_soon_threadsafe(self._merge_topics, topics, here)

    def finish(self) -> None:
        """End the iteration; call in the event loop."""
        self._ended = True
        self._news.set()

    async def aclose(self) -> None:
        """Stop listening, as an asynchronous generator would."""
        self.finish()

    def _merge_topics(self, topics: AbstractSet[str] | None, here: bool) -> None:
        if topics is None or EVERYTHING in topics:
            self._everything = True
        else:
            self._topics |= topics
            self._here |= topics if here else set()
        self._news.set()

    def _take_pending(self) -> frozenset[str] | None:
        # Nothing received during the poll interval counts as everything, too.
        topics = None if self._everything or not self._topics else Topics(self._topics)
        if topics is not None:
            topics.here = frozenset(self._here)
        self._everything = False
        self._topics.clear()
        self._here.clear()
        self._news.clear()
        return topics


class PostgresChangeFeed:
    """
    Listeners of this process, fed by local commits and by LISTEN.

    One connection listens for all of them, from the first one on. Local commits are
    published directly; their echo, which comes from one of our backends, is dropped.
    """

    def __init__(self, address: Dsn, limits: Limits, pids: set[int]) -> None:
        self._limits, self._pids = limits, pids
        # Replaced as a whole in the event loop, and read by other threads.
        self._listeners: tuple[weakref.ref[ChangeListener], ...] = ()
        self._connection = PersistentConnection(
            "clew-postgres-listen", address, self._receive_notifications
        )
        self._started = self._closed = False

    def listen(self) -> ChangeListener:
        """Return a new listener, which is removed when it is no longer referenced."""
        listener = ChangeListener(self._limits.poll_interval)
        self._listeners = (*(ref for ref in self._listeners if ref()), weakref.ref(listener))
        if self._closed:
            listener.finish()
        elif not self._started:
            self._started = True
            self._connection.start()
        return listener

    def publish(self, topics: AbstractSet[str] | None, *, here: bool = False) -> None:
        """
        Publish changed topics, or anything (``None``); from any thread.

        ``here``: this process changed them.
        """
        for listener in self._live_listeners():
            listener.push_topics(topics, here=here)

    async def aclose(self) -> None:
        """End the listeners and the connection."""
        self._closed = True
        for listener in self._live_listeners():
            listener.finish()
        await asyncio.to_thread(self._connection.close)

    def _live_listeners(self) -> Iterator[ChangeListener]:
        return (listener for ref in self._listeners if (listener := ref()) is not None)

    def _receive_notifications(self, connection: Connection, fresh: bool) -> float:
        if fresh:
            connection.execute(_LISTEN)
            # Notifications sent before LISTEN took effect were missed.
            self.publish(None)
            return self._limits.keepalive_interval
        connection.pgconn.consume_input()
        topics: set[str] = set()
        while (heard := connection.pgconn.notifies()) is not None:
            if heard.be_pid not in self._pids:
                topics.add(heard.extra.decode())
        topics.update(note.payload for note in connection.notifies(timeout=0))
        if topics:
            self.publish(topics)
        return self._limits.keepalive_interval
