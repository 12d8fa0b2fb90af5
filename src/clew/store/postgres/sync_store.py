"""Synchronous store on a PostgreSQL database."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Concatenate, LiteralString, ParamSpec, TypeVar

from clew.errors import StoreUnavailable
from clew.store.postgres import opening, retry
from clew.store.postgres.dsn import Dsn
from clew.store.postgres.errors import translate_error
from clew.store.postgres.limits import Limits
from clew.store.postgres.retry import RetryState
from clew.store.postgres.tx import TransactionFailed
from clew.store.postgres.worker_connection import WorkerConnection
from clew.store.sync_store import SyncStore

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from clew.store.contract import Tx

P = ParamSpec("P")
T = TypeVar("T")

#: Another store is read or filled between two statements, which may take a while.
_LIMITS = Limits(idle_transaction_timeout=3600.0, idle_read_timeout=3600.0)


class PostgresSyncStore(SyncStore):
    """Tables of the connection's default schema, or of ``schema``."""

    dialect = "postgres"

    def __init__(self, url: str, *, schema: LiteralString | None = None) -> None:
        """
        Connect.

        :raises StoreUnusable: if the server or its database is unsuitable
        :raises StoreUnavailable: if it does not respond now
        """
        address = Dsn(url)
        self.name = address.name
        self._schema: LiteralString | None = schema
        pids: set[int] = set()
        self._reader = WorkerConnection(address, pids, pause=_LIMITS.idle_read_timeout)
        self._writer = WorkerConnection(address, pids, pause=_LIMITS.idle_transaction_timeout)
        try:
            opening.probe_server(self._writer, address)
        except TransactionFailed as void:
            raise StoreUnavailable(
                f"PostgreSQL at {self.name}: {translate_error(void.error)}"
            ) from void

    def read(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._interruptible_job(self._reader) as tries:
            return retry.run_read(
                self._reader, lambda t: job(self._set_search_path(t), *args, **kwargs), None, tries
            )

    def write(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._interruptible_job(self._writer) as tries:
            result, _ = retry.run_write(
                self._writer, lambda t: job(self._set_search_path(t), *args, **kwargs), None, tries
            )
        return result

    def close(self) -> None:
        self._reader.drop()
        self._writer.drop()

    def _set_search_path(self, t: Tx) -> Tx:
        if self._schema is not None:
            t.execute(f"SET LOCAL search_path TO {self._schema}")
        return t

    @contextmanager
    def _interruptible_job(self, link: WorkerConnection) -> Generator[RetryState]:
        try:
            yield RetryState(_LIMITS, time.monotonic())
        except KeyboardInterrupt:
            # In the middle of a statement, whose result is no longer needed.
            link.drop()
            raise
        finally:
            link.reset()
