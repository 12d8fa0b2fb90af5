"""Run a job, and run it again where that helps."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, NoReturn

import structlog

from clew.errors import StoreUnavailable
from clew.store.postgres.errors import UNIQUE, Fate, fate, translate
from clew.store.postgres.tx import DURABLE, READ, WRITE, PgTx, Voided

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    import psycopg

    from clew.clock import Clock
    from clew.store.contract import Tx
    from clew.store.postgres.limits import Limits
    from clew.store.postgres.link import Link

    T = TypeVar("T")

log = structlog.get_logger()


class Attempts:
    """
    The bookkeeping of one job: how often it was tried, what went wrong, whether it may go on.

    Jobs are functions of the transaction alone and take ids made by their caller, so running one
    again is safe even when the connection was lost in COMMIT and nobody knows its outcome.
    """

    def __init__(self, limits: Limits, since: float) -> None:
        """``since``: when the job was accepted, by the monotonic clock."""
        self._limits, self._since = limits, since
        self._conflicts = self._losses = self._failed = 0
        #: A COMMIT was lost: the job may have been stored.
        self.uncertain = False

    def consider(self, link: Link, void: Voided) -> None:
        """Return, after a pause, if the job shall run again; else raise what its caller gets."""
        what = fate(void.error)
        broken = link.broken
        if broken or what is Fate.LOST:
            what = Fate.LOST
            link.drop()
        if what is Fate.LOST and void.committing:
            self.uncertain = True
        elif self.uncertain and void.error.sqlstate == UNIQUE:
            # The lost COMMIT became visible between the job's look and its insert.
            what = Fate.CONFLICT
        link.tidy()
        if what is Fate.CONFLICT:
            self._conflict(void.error)
        elif what is Fate.LOST:
            self._loss(void.error, broken=broken)
        else:
            _raise(void)
        log.info("store_job_repeated", reason=what.value, error=str(void.error))

    def _conflict(self, error: psycopg.Error) -> None:
        self._conflicts += 1
        if self._conflicts > self._limits.conflicts or self._late(self._limits.queue):
            self._give_up(error)
        _pause(0.001 * 2 ** min(self._conflicts, 7))

    def _loss(self, error: psycopg.Error, *, broken: bool) -> None:
        self._failed += 1
        self._losses += broken
        # What became of a lost COMMIT only the server can say: it is asked for longer.
        patience = self._limits.doubt if self.uncertain else self._limits.patience
        late = self._failed > 1 and self._late(patience)
        # A job that breaks each connection that it gets may be the reason.
        if late or self._losses > self._limits.losses:
            self._give_up(error)
        if self._failed > 1:
            _pause(min(0.02 * 2 ** min(self._failed, 6), patience))

    def _late(self, bound: float) -> bool:
        return time.monotonic() - self._since >= bound

    def _give_up(self, error: psycopg.Error) -> NoReturn:
        known = (
            "it may have been stored: look before you try again"
            if self.uncertain
            else "nothing was stored, try again later"
        )
        raise StoreUnavailable(f"{translate(error)}; {known}", uncertain=self.uncertain) from error


def _raise(void: Voided) -> NoReturn:
    if void.raised is not None:
        # The job may have made an error of its own out of a constraint's.
        raise void.raised from void.raised.__cause__
    raise translate(void.error) from void.error


def _pause(longest: float) -> None:
    time.sleep(longest * random.uniform(0.5, 1.0))


def write(
    link: Link, job: Callable[[Tx], T], clock: Clock | None, attempts: Attempts
) -> tuple[T, frozenset[str] | None]:
    """
    Run a job until it is committed; its result, and the topics that it woke.

    Topics are ``None`` (anything may have changed) when an earlier COMMIT was lost: that one may
    have woken others than the one that succeeded.

    :raises StoreError: what the driver's last error means
    :raises BaseException: what the job raises by itself
    """
    while True:
        tx = PgTx(link, WRITE, clock)
        try:
            result = _call(tx, job)
            if attempts.uncertain:
                # What the lost COMMIT left may be on this server alone: ours, which waits for the
                # stand-by, must have something to wait for.
                tx.one(DURABLE)
            tx.commit()
        except Voided as void:
            attempts.consider(link, void)
        else:
            return result, None if attempts.uncertain else tx.topics


def read(link: Link, job: Callable[[Tx], T], clock: Clock | None, attempts: Attempts) -> T:
    """Run a job on a snapshot. The worker ends the transaction after the caller has the result."""
    while True:
        try:
            return _call(PgTx(link, READ, clock), job)
        except Voided as void:
            attempts.consider(link, void)


def _call(tx: PgTx, job: Callable[[Tx], T]) -> T:
    try:
        result = job(tx)
    except BaseException as error:
        if tx.failure is None:
            raise
        raise Voided(tx.failure, raised=error) from error
    if tx.failure is not None:
        raise Voided(tx.failure) from tx.failure
    return result
