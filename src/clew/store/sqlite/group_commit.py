"""Group commit: many jobs in one durable transaction, with an exact outcome for each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import apsw

from clew.store.sqlite.driver import Cursor, new_cursor
from clew.store.sqlite.errors import translate_error
from clew.store.sqlite.tx import JobContext, SqliteTx

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.store.sqlite.jobs import Job

#: From this many jobs on, run them first without savepoints, expecting that none fails.
OPTIMISTIC_MIN_JOBS = 16
#: A batch starts no further job after this many seconds, so that other processes can write.
MAX_BATCH_SECONDS = 0.05


def is_transaction_open(connection: apsw.Connection) -> bool:
    """
    Return true if the transaction is still open after a job failed.

    Some errors (a full disk, an I/O error, no memory) make SQLite roll back the whole
    transaction by itself. Earlier jobs of the batch have then lost their writes, and
    whatever runs next would commit on its own.
    """
    return connection.in_transaction


class GroupCommitter:
    """Runner of job batches on the write connection."""

    def __init__(
        self,
        connection: apsw.Connection,
        surroundings: JobContext,
        begin: Callable[[Cursor], None],
        commit: Callable[[Cursor], None],
    ) -> None:
        """Store the connection; ``begin`` and ``commit`` may raise ``apsw.Error``."""
        self._connection = connection
        self._cursor = new_cursor(connection)
        self._surroundings = surroundings
        self._begin = begin
        self._end = commit
        #: The time of the transaction, in milliseconds.
        self._now = 0

    def run_batch(self, jobs: Sequence[Job]) -> int:
        """
        Run jobs in one transaction; return how many, from the first, have a final outcome.

        At least one has. A failed job affects no other. If the whole batch is void, each
        job runs again in its own transaction, except the one whose error voided the batch.
        """
        if failed := self._begin_or_fail(jobs):
            return failed
        until = time.monotonic() + MAX_BATCH_SECONDS
        self._now = self._surroundings.now_millis()
        if len(jobs) >= OPTIMISTIC_MIN_JOBS:
            if count := self._run_optimistic(jobs, until):
                return self._commit_batch(jobs[:count])
            if failed := self._begin_or_fail(jobs):
                return failed
        count = 0
        for job in jobs:
            count += 1
            self._run_in_savepoint(job)
            if job.error is not None and not is_transaction_open(self._connection):
                job.set_outcome(job.error)
                return self._run_individually(jobs)
            if time.monotonic() > until:
                break
        return self._commit_batch(jobs[:count])

    def _begin_or_fail(self, jobs: Sequence[Job]) -> int:
        """Begin a transaction and return 0; otherwise fail the jobs and return their number."""
        try:
            self._begin(self._cursor)
        except apsw.Error as error:
            return _fail_unfinished(jobs, error)
        return 0

    def _run_optimistic(self, jobs: Sequence[Job], until: float) -> int:
        """
        Run jobs without savepoints; return how many, or 0 if one failed (all rolled back).

        Savepoints are a third of the statements of a short job, and each statement costs a
        hand-over of the interpreter. Jobs may run again, so a failure costs only time.
        """
        for count, job in enumerate(jobs, 1):
            tx = SqliteTx(self._connection, self._cursor, self._surroundings, self._now)
            try:
                job.value = job.call(tx, *job.args, **job.kwargs)
            except BaseException:  # noqa: BLE001 - it fails again, and is reported, later
                break
            if not is_transaction_open(self._connection) or tx.failure is not None:
                # The job caught the error that voided the batch.
                break
            job.error, job.topics = None, tx.topics
            if time.monotonic() > until:
                return count
        else:
            return len(jobs)
        self._roll_back()
        return 0

    def _run_in_savepoint(self, job: Job) -> None:
        """Run a job in a savepoint; record its error, if any, in the job."""
        execute = self._cursor.execute
        execute("SAVEPOINT job")
        tx = SqliteTx(self._connection, self._cursor, self._surroundings, self._now)
        try:
            job.value = job.call(tx, *job.args, **job.kwargs)
            execute("RELEASE job")
        except BaseException as error:  # noqa: BLE001 - whatever a job raises belongs to its caller
            job.error = self._translate_job_error(tx, error)
            if is_transaction_open(self._connection):
                execute("ROLLBACK TO job")
                execute("RELEASE job")
        else:
            job.error = None
            job.topics = tx.topics

    def _translate_job_error(self, tx: SqliteTx, error: BaseException) -> BaseException:
        if isinstance(error, apsw.Error):  # the release failed
            return tx.failure or translate_error(error, self._connection)
        return error

    def _commit_batch(self, jobs: Sequence[Job]) -> int:
        try:
            self._end(self._cursor)
        except apsw.BusyError as error:  # readers would block the next job as well
            self._roll_back()
            return _fail_unfinished(jobs, error)
        except apsw.Error:
            self._roll_back()
            return self._run_individually(jobs)
        for job in jobs:
            job.set_outcome(job.error)
        return len(jobs)

    def _run_individually(self, jobs: Sequence[Job]) -> int:
        """Run the jobs without a final outcome again, each in its own transaction."""
        for job in jobs:
            if job.final:
                continue
            if failed := self._begin_or_fail(jobs):
                return failed
            self._now = self._surroundings.now_millis()
            self._run_alone(job)
        return len(jobs)

    def _run_alone(self, job: Job) -> None:
        try:
            self._run_in_savepoint(job)
            if job.error is None:
                self._end(self._cursor)
            else:
                # A virtual table may keep what the savepoint rolled back, and break the COMMIT.
                self._roll_back()
            job.set_outcome(job.error)
        except apsw.Error as error:
            job.set_outcome(translate_error(error, self._connection))
            self._roll_back()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._cursor.execute("ROLLBACK")


def _fail_unfinished(jobs: Sequence[Job], error: apsw.Error) -> int:
    for job in jobs:
        if not job.final:
            job.set_outcome(translate_error(error))
    return len(jobs)
