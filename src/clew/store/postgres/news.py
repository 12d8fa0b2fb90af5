"""Who changed what: LISTEN, and the listeners of this process."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from typing import TYPE_CHECKING, Self

from clew.store.contract import Topics
from clew.store.postgres.line import Line
from clew.store.postgres.tx import CHANNEL, EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from clew.store.postgres.address import Address, Connection
    from clew.store.postgres.limits import Limits

_LISTEN = f"LISTEN {CHANNEL}".encode()


class Changes:
    """
    One listener: an endless iterator of topics, merged while nobody asks.

    ``None`` ("anything may have changed") comes first, after each gap in the connection, and when
    nothing was heard for ``poll`` seconds. Ends when the store closes. Cancelling a step loses
    nothing.
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
        return self._take()

    def tell(self, topics: AbstractSet[str] | None, *, here: bool = False) -> None:
        """From any thread; ``here``: this process woke them."""
        with contextlib.suppress(RuntimeError):
            # A closed loop has nobody who listens.
            self._loop.call_soon_threadsafe(self._add, topics, here)

    def end(self) -> None:
        """In the loop: no more steps."""
        self._ended = True
        self._news.set()

    async def aclose(self) -> None:
        """Stop listening, as an asynchronous generator would."""
        self.end()

    def _add(self, topics: AbstractSet[str] | None, here: bool) -> None:
        if topics is None or EVERYTHING in topics:
            self._everything = True
        else:
            self._topics |= topics
            self._here |= topics if here else set()
        self._news.set()

    def _take(self) -> frozenset[str] | None:
        # Nothing heard until the poll was over counts as everything, too.
        topics = None if self._everything or not self._topics else Topics(self._topics)
        if topics is not None:
            topics.here = frozenset(self._here)
        self._everything = False
        self._topics.clear()
        self._here.clear()
        self._news.clear()
        return topics


class News:
    """
    Tells the listeners of this process what was woken here and elsewhere.

    One connection listens for all of them, from the first one on. Our own commits are told
    directly; their echo, which comes from one of our backends, is dropped.
    """

    def __init__(self, address: Address, limits: Limits, pids: set[int]) -> None:
        self._limits, self._pids = limits, pids
        # Replaced as a whole in the event loop, and read by the other threads.
        self._listeners: tuple[weakref.ref[Changes], ...] = ()
        self._line = Line("clew-postgres-listen", address, self._serve)
        self._started = self._closed = False

    def listen(self) -> Changes:
        """A new listener; it is forgotten when nobody holds it."""
        listener = Changes(self._limits.poll)
        self._listeners = (*(ref for ref in self._listeners if ref()), weakref.ref(listener))
        if self._closed:
            listener.end()
        elif not self._started:
            self._started = True
            self._line.start()
        return listener

    def tell(self, topics: AbstractSet[str] | None, *, here: bool = False) -> None:
        """From any thread: these topics changed, or anything (``None``); ``here``: by us."""
        for listener in self._alive():
            listener.tell(topics, here=here)

    async def aclose(self) -> None:
        """End the listeners and the connection."""
        self._closed = True
        for listener in self._alive():
            listener.end()
        await asyncio.to_thread(self._line.close)

    def _alive(self) -> Iterator[Changes]:
        return (listener for ref in self._listeners if (listener := ref()) is not None)

    def _serve(self, connection: Connection, fresh: bool) -> float:
        if fresh:
            connection.execute(_LISTEN)
            # What was woken before LISTEN took effect was not heard.
            self.tell(None)
            return self._limits.pulse
        connection.pgconn.consume_input()
        topics: set[str] = set()
        while (heard := connection.pgconn.notifies()) is not None:
            if heard.be_pid not in self._pids:
                topics.add(heard.extra.decode())
        topics.update(note.payload for note in connection.notifies(timeout=0))
        if topics:
            self.tell(topics)
        return self._limits.pulse
