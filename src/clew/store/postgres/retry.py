"""Execution of a job, with retries where they help."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NoReturn

import structlog

from clew.backoff import add_jitter
from clew.errors import StoreUnavailable
from clew.store.postgres.errors import (
    UNIQUE_VIOLATION,
    Disposition,
    classify_error,
    translate_error,
)
from clew.store.postgres.tx import (
    BEGIN_READ,
    BEGIN_WRITE,
    FORCE_DURABLE,
    PostgresTx,
    TransactionFailed,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    import psycopg

    from clew.clock import Clock
    from clew.store.contract import Tx
    from clew.store.postgres.limits import Limits
    from clew.store.postgres.worker_connection import WorkerConnection

    T = TypeVar("T")

log = structlog.get_logger()


class RetryState:
    """
    Retry state of one job: its failures so far, and whether it may run again.

    Jobs are functions of the transaction alone and take ids made by their caller, so
    running one again is safe even when the connection was lost in COMMIT and the outcome is
    unknown.
    """

    def __init__(self, limits: Limits, since: float) -> None:
        """Store the limits; ``since`` is when the job was accepted, by the monotonic clock."""
        self._limits, self._since = limits, since
        self._conflicts = self._losses = self._failed = 0
        #: A COMMIT was lost: the job may have been stored.
        self.uncertain = False

    def retry_or_raise(self, link: WorkerConnection, void: TransactionFailed) -> None:
        """Return, after a pause, if the job should run again; else raise the caller's error."""
        what = classify_error(void.error)
        broken = link.is_broken
        if broken or what is Disposition.LOST:
            what = Disposition.LOST
            link.drop()
        if what is Disposition.LOST and void.committing:
            self.uncertain = True
        elif self.uncertain and void.error.sqlstate == UNIQUE_VIOLATION:
            # The lost COMMIT became visible between the job's check and its insert.
            what = Disposition.CONFLICT
        link.reset()
        if what is Disposition.CONFLICT:
            self._handle_conflict(void.error)
        elif what is Disposition.LOST:
            self._handle_lost_connection(void.error, broken=broken)
        else:
            _raise_original(void)
        log.info("store_job_repeated", reason=what.value, error=str(void.error))

    def _handle_conflict(self, error: psycopg.Error) -> None:
        self._conflicts += 1
        if self._conflicts > self._limits.max_conflicts or self._has_elapsed(
            self._limits.queue_timeout
        ):
            self._raise_unavailable(error)
        _sleep_with_jitter(0.001 * 2 ** min(self._conflicts, 7))

    def _handle_lost_connection(self, error: psycopg.Error, *, broken: bool) -> None:
        self._failed += 1
        self._losses += broken
        # Only the server knows the outcome of a lost COMMIT: retry for longer.
        patience = (
            self._limits.uncertain_retry_timeout if self.uncertain else self._limits.retry_timeout
        )
        late = self._failed > 1 and self._has_elapsed(patience)
        # A job that breaks every connection may itself be the cause.
        if late or self._losses > self._limits.max_losses:
            self._raise_unavailable(error)
        if self._failed > 1:
            _sleep_with_jitter(min(0.02 * 2 ** min(self._failed, 6), patience))

    def _has_elapsed(self, bound: float) -> bool:
        return time.monotonic() - self._since >= bound

    def _raise_unavailable(self, error: psycopg.Error) -> NoReturn:
        known = (
            "it may have been stored: check before you try again"
            if self.uncertain
            else "nothing was stored, try again later"
        )
        raise StoreUnavailable(
            f"{translate_error(error)}; {known}", uncertain=self.uncertain
        ) from error


def _raise_original(void: TransactionFailed) -> NoReturn:
    if void.raised is not None:
        # The job may have replaced a constraint violation with an error of its own.
        raise void.raised from void.raised.__cause__
    raise translate_error(void.error) from void.error


def _sleep_with_jitter(longest: float) -> None:
    time.sleep(add_jitter(longest))


def run_write(
    link: WorkerConnection, job: Callable[[Tx], T], clock: Clock | None, attempts: RetryState
) -> tuple[T, frozenset[str] | None]:
    """
    Run a job until it is committed; return its result and the topics that it notified.

    Topics are ``None`` (anything may have changed) when an earlier COMMIT was lost: that
    one may have notified other topics than the one that succeeded.

    :raises StoreError: the meaning of the driver's last error
    :raises BaseException: what the job itself raises
    """
    while True:
        tx = PostgresTx(link, BEGIN_WRITE, clock)
        try:
            result = _call_job(tx, job)
            if attempts.uncertain:
                # The data of the lost COMMIT may be on this server alone: ours, which waits for
                # the stand-by, must have something to wait for.
                tx.fetch_one(FORCE_DURABLE)
            tx.commit()
        except TransactionFailed as void:
            attempts.retry_or_raise(link, void)
        else:
            return result, None if attempts.uncertain else tx.topics


def run_read(
    link: WorkerConnection, job: Callable[[Tx], T], clock: Clock | None, attempts: RetryState
) -> T:
    """Run a job on a snapshot; the worker ends the transaction after returning the result."""
    while True:
        try:
            return _call_job(PostgresTx(link, BEGIN_READ, clock), job)
        except TransactionFailed as void:
            attempts.retry_or_raise(link, void)


def _call_job(tx: PostgresTx, job: Callable[[Tx], T]) -> T:
    try:
        result = job(tx)
    except BaseException as error:
        if tx.failure is None:
            raise
        raise TransactionFailed(tx.failure, raised=error) from error
    if tx.failure is not None:
        raise TransactionFailed(tx.failure) from tx.failure
    return result
