"""Pool of threads, each with its own connection, that run jobs for the event loop."""

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
    from clew.store.postgres.worker_connection import WorkerConnection

T = TypeVar("T")
log = structlog.get_logger()

#: Seconds without new connections after the server refused one.
_GROW_AGAIN = 5.0


class PoolJob(Generic[T]):
    """Work for a thread, and the future on which its caller waits."""

    def __init__(self, work: Callable[[WorkerConnection, float], T]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self._loop.create_future()
        self.since = time.monotonic()
        self.queue_timer: asyncio.TimerHandle | None = None
        #: Checks for a stalled server when the job takes long.
        self.stall_timer: asyncio.TimerHandle | None = None
        #: The connection in use while it runs.
        self.connection: WorkerConnection | None = None

    def run(self, link: WorkerConnection) -> Callable[[], None]:
        """Do the work, in the thread; return a callback that delivers it. Never raises."""
        self.connection = link
        try:
            result = self._work(link, self.since)
        except StopIteration as error:
            # A future cannot carry it.
            wrapped = RuntimeError("the job raised StopIteration")
            wrapped.__cause__ = error
            return partial(self.call_in_loop, partial(self.fail, wrapped))
        except BaseException as error:  # noqa: BLE001 - raised at the caller
            return partial(self.call_in_loop, partial(self.fail, error))
        finally:
            self.connection = None
        return partial(self.call_in_loop, partial(self._resolve_future, result))

    def call_in_loop(self, call: Callable[[], None]) -> None:
        """Call a function in the caller's event loop; from a thread."""
        with suppress(RuntimeError):
            # A closed loop: the caller is gone.
            self._loop.call_soon_threadsafe(call)

    def _resolve_future(self, result: T) -> None:
        self._cancel_timers()
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Raise ``error`` at the caller, unless it was cancelled; call in the event loop."""
        self._cancel_timers()
        if not self.future.done():
            self.future.set_exception(error)

    def _cancel_timers(self) -> None:
        for timer in (self.queue_timer, self.stall_timer):
            if timer is not None:
                timer.cancel()


class WorkerPool:
    """
    Pool of at most ``size`` workers, started on demand and ended when idle.

    Work that finds no free worker waits in order, at most ``limits.queue_timeout`` seconds.
    """

    def __init__(
        self, name: str, size: int, link: Callable[[], WorkerConnection], limits: Limits
    ) -> None:
        self._name, self._size, self._link, self._limits = name, size, link, limits
        self._lock = threading.Lock()
        self._backlog: deque[PoolJob[Any]] = deque()
        # Last in, first out: its connection is warm, and the others may time out.
        self._idle_workers: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self._closing = False
        self._full_until = 0.0

    async def run(self, work: Callable[[WorkerConnection, float], T]) -> T:
        """
        Have a worker run ``work(connection, accepted at)``.

        Cancelling the caller does not stop it.

        :raises StoreUnavailable: if the pool is closed, or no worker became free in time
        """
        errand = PoolJob(work)
        with self._lock:
            if self._closing:
                raise StoreUnavailable("the store is closed")
            self._start_stall_timer(errand)
            if self._idle_workers:
                self._idle_workers.pop().inbox.put(errand)
            elif not self._workers or self._can_grow():
                self._start_worker(errand)
            else:
                self._backlog.append(errand)
                self._start_queue_timer(errand)
        return await errand.future

    async def aclose(self) -> None:
        """Let accepted work finish, then end the workers and close their connections."""
        with self._lock:
            self._closing = True
            workers = list(self._workers)
            for worker in self._idle_workers:
                worker.inbox.put(None)
            self._idle_workers.clear()
        await asyncio.to_thread(_join_workers, workers)

    def release_worker(self, worker: _Worker) -> None:
        """Give a worker the next waiting job or its end, or mark it idle; from its thread."""
        with self._lock:
            if self._backlog:
                worker.inbox.put(self._backlog.popleft())
            elif self._closing:
                worker.inbox.put(None)
            else:
                self._idle_workers.append(worker)

    def next_job(self, worker: _Worker) -> PoolJob[Any] | None:
        """Wait, in an idle worker, for the next job; ``None`` ends the worker."""
        try:
            return worker.inbox.get(timeout=self._limits.idle_timeout)
        except Empty:
            return self._retire_worker(worker)

    def return_job(self, worker: _Worker, errand: PoolJob[Any]) -> bool:
        """
        Leave the job to other workers, if any, when a new one gets no connection.

        The server may have no more connections for us; a slow worker is better than a
        failure.
        """
        with self._lock:
            if len(self._workers) == 1:
                return False
            self._workers.discard(worker)
            self._full_until = time.monotonic() + _GROW_AGAIN
            if self._idle_workers:
                self._idle_workers.pop().inbox.put(errand)
            else:
                self._backlog.appendleft(errand)
        errand.call_in_loop(partial(self._start_queue_timer, errand))
        return True

    def _can_grow(self) -> bool:
        return len(self._workers) < self._size and time.monotonic() >= self._full_until

    def _start_queue_timer(self, errand: PoolJob[Any]) -> None:
        # In the event loop. Work that has started in the meantime is not affected.
        loop = asyncio.get_running_loop()
        errand.queue_timer = loop.call_later(self._limits.queue_timeout, self._expire_job, errand)

    def _start_stall_timer(self, errand: PoolJob[Any]) -> None:
        loop = asyncio.get_running_loop()
        errand.stall_timer = loop.call_later(
            self._limits.stall_check_interval, self._check_stalled_job, errand
        )

    def _check_stalled_job(self, errand: PoolJob[Any]) -> None:
        # In the event loop. Slow is not stalled: only what the server no longer knows is aborted.
        self._start_stall_timer(errand)
        asyncio.get_running_loop().run_in_executor(None, _abort_if_stalled, errand)

    def _retire_worker(self, worker: _Worker) -> PoolJob[Any] | None:
        with self._lock:
            if worker in self._idle_workers:
                self._idle_workers.remove(worker)
                self._workers.discard(worker)
                return None
        # Picked in the moment of its time-out: the inbox has a job.
        return worker.inbox.get()

    def _start_worker(self, errand: PoolJob[Any]) -> None:
        worker = _Worker(f"{self._name}-{len(self._workers)}", self, self._link(), errand)
        self._workers.add(worker)
        worker.start()

    def _expire_job(self, errand: PoolJob[Any]) -> None:
        with self._lock:
            if errand not in self._backlog:
                return
            self._backlog.remove(errand)
        errand.fail(
            StoreUnavailable(
                f"all {len(self._workers)} connections were busy for "
                f"{self._limits.queue_timeout:g} s;"
                " nothing was stored, try again later"
            )
        )


class _Worker(threading.Thread):
    """Thread with a connection."""

    def __init__(
        self, name: str, pool: WorkerPool, link: WorkerConnection, first: PoolJob[Any]
    ) -> None:
        # A daemon: a program that forgets to close must still end.
        super().__init__(name=name, daemon=True)
        self._pool, self._link = pool, link
        self.inbox: SimpleQueue[PoolJob[Any] | None] = SimpleQueue()
        self.inbox.put(first)

    def run(self) -> None:
        errand = self.inbox.get()
        if errand is None or self._cannot_connect(errand):
            return
        while errand is not None:
            settle = errand.run(self._link)
            # Released before the caller gets its result: an immediate next call finds this worker
            # and its warm connection. A reader's transaction is ended while its caller continues.
            self._pool.release_worker(self)
            settle()
            # An idle worker must not keep the outcome alive.
            del errand, settle
            self._link.reset()
            errand = self._pool.next_job(self)
        self._link.drop()

    def _cannot_connect(self, errand: PoolJob[Any]) -> bool:
        try:
            self._link.open()
        except psycopg.Error:
            return self._pool.return_job(self, errand)
        return False


def _abort_if_stalled(errand: PoolJob[Any]) -> None:
    link = errand.connection
    if link is not None and link.is_stalled() and errand.connection is link:
        log.warning("store_silent", seconds=round(time.monotonic() - errand.since, 1))
        link.abort()


def _join_workers(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.join()
