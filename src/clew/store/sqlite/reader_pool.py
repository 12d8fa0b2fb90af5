"""Threads that read, each on its own connection."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

import apsw

from clew.errors import StoreUnavailable
from clew.store.sqlite.driver import new_cursor
from clew.store.sqlite.errors import translate_error
from clew.store.sqlite.jobs import Job, fail_unfinished
from clew.store.sqlite.opening import connect
from clew.store.sqlite.tx import JobContext, SqliteTx

if TYPE_CHECKING:
    from pathlib import Path


class ReaderPool:
    """Pool of reader threads; one starts when a job finds all others busy."""

    def __init__(self, path: Path, surroundings: JobContext, *, most: int) -> None:
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
        Run ``job`` on a snapshot taken no earlier than this call.

        :raises StoreUnavailable: after ``close``
        """
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            self._unfinished += 1
            if len(self._threads) < min(self._unfinished, self._most):
                self._start_thread()
            self._queue.put(job)

    def close(self) -> None:
        """Finish the submitted jobs, then end the threads."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            thread.join()

    def _start_thread(self) -> None:
        name = f"clew-reader-{len(self._threads)}"
        thread = threading.Thread(target=self._run_thread, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run_thread(self) -> None:
        connection: apsw.Connection | None = None
        try:
            while (job := self._queue.get()) is not None:
                connection = self._execute_job(job, connection)
                with self._lock:
                    self._unfinished -= 1
        finally:
            if connection is not None:
                connection.close()

    def _execute_job(self, job: Job, connection: apsw.Connection | None) -> apsw.Connection | None:
        try:
            if connection is None:
                connection = connect(self._path, reader=True)
            job.set_outcome() if job.future.cancelled() else self._run_in_snapshot(job, connection)
        except apsw.Error as error:
            job.set_outcome(translate_error(error))
        finally:
            fail_unfinished([job], StoreUnavailable("the reader died"))
        return connection

    def _run_in_snapshot(self, job: Job, connection: apsw.Connection) -> None:
        cursor = new_cursor(connection)
        cursor.execute("BEGIN")
        try:
            tx = SqliteTx(connection, cursor, self._surroundings)
            job.value = job.call(tx, *job.args, **job.kwargs)
            job.set_outcome()
        except BaseException as error:  # noqa: BLE001 - whatever a job raises belongs to its caller
            job.set_outcome(error)
        finally:
            if connection.in_transaction:
                cursor.execute("ROLLBACK")
