"""A few threads, each with a connection of its own, that run what the event loop hands them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import psycopg
import structlog

from clew.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.store.postgres.limits import Limits
    from clew.store.postgres.link import Link

T = TypeVar("T")
log = structlog.get_logger()

#: Seconds without new connections after the server refused one.
_GROW_AGAIN = 5.0


class Errand(Generic[T]):
    """Work for a thread, and the future that waits for it in its event loop."""

    def __init__(self, work: Callable[[Link, float], T]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self._loop.create_future()
        self.since = time.monotonic()
        self.timer: asyncio.TimerHandle | None = None
        #: Looks whether it takes too long.
        self.watch: asyncio.TimerHandle | None = None
        #: The connection that it works on, while it does.
        self.link: Link | None = None

    def run(self, link: Link) -> Callable[[], None]:
        """In the thread: do it; return what hands the outcome over. Never raises."""
        self.link = link
        try:
            result = self._work(link, self.since)
        except StopIteration as error:
            # A future refuses to carry it.
            wrapped = RuntimeError("the job raised StopIteration")
            wrapped.__cause__ = error
            return partial(self.in_loop, partial(self.fail, wrapped))
        except BaseException as error:  # noqa: BLE001 - raised at the caller
            return partial(self.in_loop, partial(self.fail, error))
        finally:
            self.link = None
        return partial(self.in_loop, partial(self._succeed, result))

    def in_loop(self, call: Callable[[], None]) -> None:
        """In a thread: have the loop of the caller do something."""
        with suppress(RuntimeError):
            # A closed loop: nobody waits any more.
            self._loop.call_soon_threadsafe(call)

    def _succeed(self, result: T) -> None:
        self._settled()
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """In the loop: the caller gets ``error``, unless it was cancelled."""
        self._settled()
        if not self.future.done():
            self.future.set_exception(error)

    def _settled(self) -> None:
        for timer in (self.timer, self.watch):
            if timer is not None:
                timer.cancel()


class Pool:
    """
    At most ``size`` workers, started when needed and ended when idle.

    Work that finds no free worker waits in order, at most ``limits.queue`` seconds.
    """

    def __init__(self, name: str, size: int, link: Callable[[], Link], limits: Limits) -> None:
        self._name, self._size, self._link, self._limits = name, size, link, limits
        self._lock = threading.Lock()
        self._backlog: deque[Errand[Any]] = deque()
        # The last to rest is the first to work: its connection is warm, the others may end.
        self._resting: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self._closing = False
        self._full_until = 0.0

    async def run(self, work: Callable[[Link, float], T]) -> T:
        """
        Have a worker run ``work(link, accepted at)``.

        Cancelling the caller does not stop it.

        :raises StoreUnavailable: the pool is closed, or no worker became free in time
        """
        errand = Errand(work)
        with self._lock:
            if self._closing:
                raise StoreUnavailable("the store is closed")
            self._watch(errand)
            if self._resting:
                self._resting.pop().inbox.put(errand)
            elif not self._workers or self._may_grow():
                self._start(errand)
            else:
                self._backlog.append(errand)
                self._bound(errand)
        return await errand.future

    async def aclose(self) -> None:
        """Let accepted work end, then end the workers and close their connections."""
        with self._lock:
            self._closing = True
            workers = list(self._workers)
            for worker in self._resting:
                worker.inbox.put(None)
            self._resting.clear()
        await asyncio.to_thread(_join, workers)

    def free(self, worker: _Worker) -> None:
        """In a worker: its inbox gets what waits, or an end, or whatever comes next."""
        with self._lock:
            if self._backlog:
                worker.inbox.put(self._backlog.popleft())
            elif self._closing:
                worker.inbox.put(None)
            else:
                self._resting.append(worker)

    def next(self, worker: _Worker) -> Errand[Any] | None:
        """In a free worker: wait for the next errand; ``None`` ends the worker."""
        try:
            return worker.inbox.get(timeout=self._limits.idle)
        except Empty:
            return self._leave(worker)

    def give_back(self, worker: _Worker, errand: Errand[Any]) -> bool:
        """
        In a new worker that gets no connection: leave the errand to the others, if there are any.

        The server may have no more connections for us; one that works slowly beats one that fails.
        """
        with self._lock:
            if len(self._workers) == 1:
                return False
            self._workers.discard(worker)
            self._full_until = time.monotonic() + _GROW_AGAIN
            if self._resting:
                self._resting.pop().inbox.put(errand)
            else:
                self._backlog.appendleft(errand)
        errand.in_loop(partial(self._bound, errand))
        return True

    def _may_grow(self) -> bool:
        return len(self._workers) < self._size and time.monotonic() >= self._full_until

    def _bound(self, errand: Errand[Any]) -> None:
        # In the loop. Work that began in the meantime is not touched by it.
        loop = asyncio.get_running_loop()
        errand.timer = loop.call_later(self._limits.queue, self._expire, errand)

    def _watch(self, errand: Errand[Any]) -> None:
        loop = asyncio.get_running_loop()
        errand.watch = loop.call_later(self._limits.silence, self._suspect, errand)

    def _suspect(self, errand: Errand[Any]) -> None:
        # In the loop. Slow is not silent: only what the server does not know of is broken off.
        self._watch(errand)
        asyncio.get_running_loop().run_in_executor(None, _look_after, errand)

    def _leave(self, worker: _Worker) -> Errand[Any] | None:
        with self._lock:
            if worker in self._resting:
                self._resting.remove(worker)
                self._workers.discard(worker)
                return None
        # Chosen in the very moment it gave up: something is in the inbox.
        return worker.inbox.get()

    def _start(self, errand: Errand[Any]) -> None:
        worker = _Worker(f"{self._name}-{len(self._workers)}", self, self._link(), errand)
        self._workers.add(worker)
        worker.start()

    def _expire(self, errand: Errand[Any]) -> None:
        with self._lock:
            if errand not in self._backlog:
                return
            self._backlog.remove(errand)
        errand.fail(
            StoreUnavailable(
                f"all {len(self._workers)} connections were busy for {self._limits.queue:g} s;"
                " nothing was stored, try again later"
            )
        )


class _Worker(threading.Thread):
    """A thread with a connection."""

    def __init__(self, name: str, pool: Pool, link: Link, first: Errand[Any]) -> None:
        # A daemon: a program that forgets to close must still end.
        super().__init__(name=name, daemon=True)
        self._pool, self._link = pool, link
        self.inbox: SimpleQueue[Errand[Any] | None] = SimpleQueue()
        self.inbox.put(first)

    def run(self) -> None:
        errand = self.inbox.get()
        if errand is None or self._cannot_connect(errand):
            return
        while errand is not None:
            settle = errand.run(self._link)
            # Free before the caller knows: one that calls again at once finds this worker and its
            # warm connection. A reader's transaction is ended while its caller goes on.
            self._pool.free(self)
            settle()
            # A resting worker must not keep the outcome alive.
            del errand, settle
            self._link.tidy()
            errand = self._pool.next(self)
        self._link.drop()

    def _cannot_connect(self, errand: Errand[Any]) -> bool:
        try:
            self._link.open()
        except psycopg.Error:
            return self._pool.give_back(self, errand)
        return False


def _look_after(errand: Errand[Any]) -> None:
    link = errand.link
    if link is not None and link.waits_in_vain() and errand.link is link:
        log.warning("store_silent", seconds=round(time.monotonic() - errand.since, 1))
        link.break_off()


def _join(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.join()
