"""Threads that read, each on its own connection."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

import apsw

from clew.errors import StoreUnavailable
from clew.store.sqlite.driver import cursor_of
from clew.store.sqlite.failures import translated
from clew.store.sqlite.handle import SqliteTx, Surroundings
from clew.store.sqlite.jobs import Job, fail
from clew.store.sqlite.opening import connect

if TYPE_CHECKING:
    from pathlib import Path


class Readers:
    """A few readers; a thread starts when a job finds all others busy."""

    def __init__(self, path: Path, surroundings: Surroundings, *, most: int) -> None:
        self._path = path
        self._surroundings = surroundings
        self._most = most
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._unfinished = 0
        self._closed = False
        self._lock = threading.Lock()

    def submit(self, job: Job) -> None:
        """
        Run ``job`` on a snapshot taken from now on.

        :raises StoreUnavailable: after ``close``
        """
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            self._unfinished += 1
            if len(self._threads) < min(self._unfinished, self._most):
                self._start_one()
            self._queue.put(job)

    def close(self) -> None:
        """Finish what was submitted, then end the threads."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            thread.join()

    def _start_one(self) -> None:
        name = f"clew-reader-{len(self._threads)}"
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        connection: apsw.Connection | None = None
        try:
            while (job := self._queue.get()) is not None:
                connection = self._answer(job, connection)
                with self._lock:
                    self._unfinished -= 1
        finally:
            if connection is not None:
                connection.close()

    def _answer(self, job: Job, connection: apsw.Connection | None) -> apsw.Connection | None:
        try:
            if connection is None:
                connection = connect(self._path, reader=True)
            job.end() if job.future.cancelled() else self._run(job, connection)
        except apsw.Error as error:
            job.end(translated(error))
        finally:
            fail([job], StoreUnavailable("the reader died"))
        return connection

    def _run(self, job: Job, connection: apsw.Connection) -> None:
        cursor = cursor_of(connection)
        cursor.execute("BEGIN")
        try:
            tx = SqliteTx(connection, cursor, self._surroundings)
            job.value = job.call(tx, *job.args, **job.kwargs)
            job.end()
        except BaseException as error:  # noqa: BLE001 - whatever a job raises belongs to its caller
            job.end(error)
        finally:
            if connection.in_transaction:
                cursor.execute("ROLLBACK")
