"""The thread that writes."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING

import structlog

from clew.errors import StoreUnavailable
from clew.store.sqlite.batch import Batches
from clew.store.sqlite.jobs import Job, deliver, fail
from clew.store.sqlite.names import Names
from clew.store.sqlite.opening import open_writer
from clew.store.sqlite.tending import Tending

if TYPE_CHECKING:
    from pathlib import Path

    import apsw

    from clew.store.sqlite.changes import Changes
    from clew.store.sqlite.handle import Surroundings

#: Jobs in one commit.
MOST = 256

_log = structlog.get_logger(__name__)


class Writer:
    """Runs write jobs in batches, in the order of their arrival, in a thread of its own."""

    def __init__(
        self, path: Path, first: apsw.Connection, surroundings: Surroundings, changes: Changes
    ) -> None:
        self._path = path
        self._first: apsw.Connection | None = first
        self._surroundings = surroundings
        self._changes = changes
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._carried: list[Job] = []
        self._closing = False
        self._ended: StoreUnavailable | None = None
        self._thread = threading.Thread(target=self._live, name="clew-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job) -> None:
        """
        Put a job in line.

        :raises StoreUnavailable: after ``close``, or when the thread has died for good
        """
        if self._ended is not None:
            raise StoreUnavailable(str(self._ended))
        if self._closing:
            raise StoreUnavailable("the store is closed")
        self._queue.put(job)
        if self._ended is not None:  # it ended in between and has perhaps not seen the job
            fail(self._drain(), self._ended)

    def nudge(self) -> None:
        """Make the thread look around if it sleeps."""
        self._queue.put(None)

    def close(self) -> None:
        """Finish what was submitted, then end the thread."""
        self._closing = True
        self.nudge()
        self._thread.join()

    def _live(self) -> None:
        death: Exception | None = None
        for _life in ("first", "second and last"):
            death = self._life()
            if death is None or isinstance(death, StoreUnavailable):
                break
        self._ended = _told(death)
        self._fail_all(self._ended)
        self._changes.close(self._ended if death else None)

    def _life(self) -> Exception | None:
        """Serve until the store is closed; what it died of, if it died."""
        try:
            connection, self._first = self._first or open_writer(self._path), None
            with contextlib.closing(connection):
                self._serve(connection)
        except StoreUnavailable as error:
            _log.error("store_lost", error=str(error))
            return error
        except Exception as error:  # noqa: BLE001 - whatever killed it, nobody may wait for ever
            _log.exception("writer_died")
            self._fail_all(_told(error))
            return error
        return None

    def _serve(self, connection: apsw.Connection) -> None:
        tending = Tending(connection, self._changes)
        names = Names(self._path)
        batches = Batches(connection, self._surroundings, tending.begin, tending.commit)
        while not (self._closing and self._queue.empty() and not self._carried):
            self._collect(tending.patience)
            tending.let_go_if_lost(names)
            if not self._carried:
                tending.idle()
                continue
            jobs = self._carried  # theirs is the error if this thread dies now
            done = batches.run(jobs)
            self._carried = jobs[done:]
            self._tell(jobs[:done])
            tending.after_batch()

    def _collect(self, patience: float | None) -> None:
        """Fill up the next batch; wait for its first job."""
        jobs = self._carried
        with contextlib.suppress(queue.Empty):
            if not jobs:
                self._take(self._queue.get(timeout=patience))
            while len(jobs) < MOST:
                self._take(self._queue.get_nowait())

    def _take(self, job: Job | None) -> None:
        if job is not None and not job.future.cancelled():
            self._carried.append(job)

    def _tell(self, jobs: list[Job]) -> None:
        deliver(jobs)
        topics = frozenset(topic for job in jobs if job.error is None for topic in job.topics)
        if topics:
            self._changes.publish(topics)

    def _fail_all(self, error: StoreUnavailable) -> None:
        fail(self._carried + self._drain(), error)
        self._carried = []

    def _drain(self) -> list[Job]:
        jobs: list[Job] = []
        while True:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return jobs
            if job is not None:
                jobs.append(job)


def _told(death: Exception | None) -> StoreUnavailable:
    """Why nothing is written any more."""
    if isinstance(death, StoreUnavailable):
        return death
    return StoreUnavailable(f"the writer died: {death}" if death else "the store is closed")
