"""Writer thread."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING

import structlog

from clew.errors import StoreUnavailable
from clew.store.sqlite.file_identity import FileIdentities
from clew.store.sqlite.group_commit import GroupCommitter
from clew.store.sqlite.jobs import Job, deliver_outcomes, fail_unfinished
from clew.store.sqlite.opening import open_writer
from clew.store.sqlite.writer_maintenance import WriterMaintenance

if TYPE_CHECKING:
    from pathlib import Path

    import apsw

    from clew.store.sqlite.changes import SqliteChangeFeed
    from clew.store.sqlite.tx import JobContext

#: Maximum number of jobs in one commit.
MAX_BATCH_JOBS = 256

_log = structlog.get_logger(__name__)


class Writer:
    """Thread that runs write jobs in batches, in order of arrival."""

    def __init__(
        self,
        path: Path,
        first: apsw.Connection,
        surroundings: JobContext,
        changes: SqliteChangeFeed,
    ) -> None:
        self._path = path
        self._first: apsw.Connection | None = first
        self._surroundings = surroundings
        self._changes = changes
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._pending: list[Job] = []
        self._closing = False
        self._ended: StoreUnavailable | None = None
        self._thread = threading.Thread(target=self._run_thread, name="clew-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job) -> None:
        """
        Queue a job.

        :raises StoreUnavailable: after ``close``, or when the thread has died for good
        """
        if self._ended is not None:
            raise StoreUnavailable(str(self._ended))
        if self._closing:
            raise StoreUnavailable("the store is closed")
        self._queue.put(job)
        if self._ended is not None:  # it ended in between and may have missed the job
            fail_unfinished(self._drain_queue(), self._ended)

    def wake(self) -> None:
        """Wake the thread if it sleeps."""
        self._queue.put(None)

    def close(self) -> None:
        """Finish the submitted jobs, then end the thread."""
        self._closing = True
        self.wake()
        self._thread.join()

    def _run_thread(self) -> None:
        death: Exception | None = None
        for _life in ("first", "second and last"):
            death = self._open_and_serve()
            if death is None or isinstance(death, StoreUnavailable):
                break
        self._ended = _closing_error(death)
        self._fail_all_jobs(self._ended)
        self._changes.close(self._ended if death else None)

    def _open_and_serve(self) -> Exception | None:
        """Serve until the store is closed; return the error that killed it, if any."""
        try:
            connection, self._first = self._first or open_writer(self._path), None
            with contextlib.closing(connection):
                self._serve_connection(connection)
        except StoreUnavailable as error:
            _log.error("store_lost", error=str(error))
            return error
        except Exception as error:  # noqa: BLE001 - whatever killed it, no caller may wait for ever
            _log.exception("writer_died")
            self._fail_all_jobs(_closing_error(error))
            return error
        return None

    def _serve_connection(self, connection: apsw.Connection) -> None:
        tending = WriterMaintenance(connection, self._changes)
        names = FileIdentities(self._path)
        batches = GroupCommitter(connection, self._surroundings, tending.begin, tending.commit)
        while not (self._closing and self._queue.empty() and not self._pending):
            self._collect_batch(tending.poll_timeout)
            tending.check_files(names)
            if not self._pending:
                tending.run_idle()
                continue
            jobs = self._pending  # they get the error if this thread dies now
            done = batches.run_batch(jobs)
            self._pending = jobs[done:]
            self._publish_outcomes(jobs[:done])
            tending.checkpoint_if_long()

    def _collect_batch(self, patience: float | None) -> None:
        """Fill the next batch; wait for its first job."""
        jobs = self._pending
        with contextlib.suppress(queue.Empty):
            if not jobs:
                self._add_to_batch(self._queue.get(timeout=patience))
            while len(jobs) < MAX_BATCH_JOBS:
                self._add_to_batch(self._queue.get_nowait())

    def _add_to_batch(self, job: Job | None) -> None:
        if job is not None and not job.future.cancelled():
            self._pending.append(job)

    def _publish_outcomes(self, jobs: list[Job]) -> None:
        deliver_outcomes(jobs)
        topics = frozenset(topic for job in jobs if job.error is None for topic in job.topics)
        if topics:
            self._changes.publish(topics)

    def _fail_all_jobs(self, error: StoreUnavailable) -> None:
        fail_unfinished(self._pending + self._drain_queue(), error)
        self._pending = []

    def _drain_queue(self) -> list[Job]:
        jobs: list[Job] = []
        while True:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return jobs
            if job is not None:
                jobs.append(job)


def _closing_error(death: Exception | None) -> StoreUnavailable:
    """Return the error for writes after the thread has ended."""
    if isinstance(death, StoreUnavailable):
        return death
    return StoreUnavailable(f"the writer died: {death}" if death else "the store is closed")
