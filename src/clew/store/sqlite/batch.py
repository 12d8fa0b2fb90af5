"""Group commit: many jobs, one durable transaction, an honest outcome for each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import apsw

from clew.store.sqlite.driver import Cursor, cursor_of
from clew.store.sqlite.failures import translated
from clew.store.sqlite.handle import SqliteTx, Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.store.sqlite.jobs import Job

#: With so many jobs it pays to hope that none fails, and to do without their savepoints.
MANY = 16
#: A batch takes no further job after this many seconds, so that others get their turn.
LONGEST = 0.05


def survives(connection: apsw.Connection) -> bool:
    """
    Whether the transaction is still open after a job failed.

    Some errors (a full disk, an I/O error, no memory) make SQLite roll back the whole transaction
    by itself. Then the jobs that ran before in this batch have lost their writes, and what runs
    next would commit on its own.
    """
    return connection.in_transaction


class Batches:
    """Runs batches of jobs on the one connection that writes."""

    def __init__(
        self,
        connection: apsw.Connection,
        surroundings: Surroundings,
        begin: Callable[[Cursor], None],
        commit: Callable[[Cursor], None],
    ) -> None:
        """``begin`` opens a write transaction, ``commit`` ends it; both raise ``apsw.Error``."""
        self._connection = connection
        self._cursor = cursor_of(connection)
        self._surroundings = surroundings
        self._begin = begin
        self._end = commit
        #: The time of the transaction.
        self._now = 0

    def run(self, jobs: Sequence[Job]) -> int:
        """
        Run jobs in one transaction; how many of them, from the first, have their final outcome.

        At least one. A job that fails takes nothing with it. Where the batch as a whole is void,
        each job runs again in a transaction of its own, except the one whose error voided it.
        """
        try:
            self._begin(self._cursor)
        except apsw.Error as error:
            return _end_all(jobs, error)
        until = time.monotonic() + LONGEST
        self._now = self._surroundings.now()
        if len(jobs) >= MANY:
            if count := self._hopefully(jobs, until):
                return self._commit(jobs[:count])
            try:
                self._begin(self._cursor)
            except apsw.Error as error:
                return _end_all(jobs, error)
        return self._carefully(jobs, until)

    def _hopefully(self, jobs: Sequence[Job], until: float) -> int:
        """
        Run jobs without savepoints; how many, or 0 if one failed and all was rolled back.

        A third of the statements of a short job are its savepoint, and each costs a hand-over of
        the interpreter. Jobs may be run again, so a failure costs only time.
        """
        for count, job in enumerate(jobs, 1):
            tx = SqliteTx(self._connection, self._cursor, self._surroundings, self._now)
            try:
                job.value = job.call(tx, *job.args, **job.kwargs)
            except BaseException:  # noqa: BLE001 - it fails again, and is told, in its savepoint
                break
            if not survives(self._connection) or tx.void is not None:
                # The job caught the error that voided the batch.
                break
            job.error, job.topics = None, tx.topics
            if time.monotonic() > until:
                return count
        else:
            return len(jobs)
        self._roll_back()
        return 0

    def _carefully(self, jobs: Sequence[Job], until: float) -> int:
        count = 0
        for job in jobs:
            count += 1
            self._attempt(job)
            if job.error is not None and not survives(self._connection):
                job.end(job.error)
                return self._one_by_one(jobs)
            if time.monotonic() > until:
                break
        return self._commit(jobs[:count])

    def _attempt(self, job: Job) -> None:
        """Run a job in a savepoint; its error, if any, is noted in it."""
        execute = self._cursor.execute
        execute("SAVEPOINT job")
        tx = SqliteTx(self._connection, self._cursor, self._surroundings, self._now)
        try:
            job.value = job.call(tx, *job.args, **job.kwargs)
            execute("RELEASE job")
        except BaseException as error:  # noqa: BLE001 - whatever a job raises belongs to its caller
            job.error = self._reason(tx, error)
            if survives(self._connection):
                execute("ROLLBACK TO job")
                execute("RELEASE job")
        else:
            job.error = None
            job.topics = tx.topics

    def _reason(self, tx: SqliteTx, error: BaseException) -> BaseException:
        if isinstance(error, apsw.Error):  # the release failed
            return tx.void or translated(error, self._connection)
        return error

    def _commit(self, jobs: Sequence[Job]) -> int:
        try:
            self._end(self._cursor)
        except apsw.BusyError as error:  # readers are in the way of the next job as well
            self._roll_back()
            return _end_all(jobs, error)
        except apsw.Error:
            self._roll_back()
            return self._one_by_one(jobs)
        for job in jobs:
            job.end(job.error)
        return len(jobs)

    def _one_by_one(self, jobs: Sequence[Job]) -> int:
        """Run those without a final outcome again, each in its own transaction."""
        for job in jobs:
            if job.final:
                continue
            try:
                self._begin(self._cursor)
            except apsw.Error as error:
                return _end_all(jobs, error)
            self._now = self._surroundings.now()
            self._alone(job)
        return len(jobs)

    def _alone(self, job: Job) -> None:
        try:
            self._attempt(job)
            if job.error is None:
                self._end(self._cursor)
            else:
                # A virtual table may keep what the savepoint took back, and spoil the COMMIT.
                self._roll_back()
            job.end(job.error)
        except apsw.Error as error:
            job.end(translated(error, self._connection))
            self._roll_back()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._cursor.execute("ROLLBACK")


def _end_all(jobs: Sequence[Job], error: apsw.Error) -> int:
    for job in jobs:
        if not job.final:
            job.end(translated(error))
    return len(jobs)
