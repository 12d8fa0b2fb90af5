"""The connection of one worker."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import psycopg
from psycopg.pq import ExecStatus, TransactionStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.store.postgres.address import Address, Connection, Cursor

_IN_TRANSACTION = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


class Link:
    """
    One connection: opened when it is first needed, dropped when it is lost.

    Used by one thread at a time.
    """

    def __init__(
        self,
        address: Address,
        pids: set[int],
        *,
        pause: float,
        in_doubt: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        ``pids`` is the store's set of its own backends, kept up to date here.

        ``in_doubt`` tells whether owners that seem dead may only have lost their connections.
        """
        self._address, self._pids, self._pause = address, pids, pause
        self._in_doubt = in_doubt
        self._connection: Connection | None = None
        self._cursor: Cursor | None = None

    @property
    def connection(self) -> Connection:
        """The open connection; raises what the driver raises while opening it."""
        if self._connection is None:
            self._connection = self._address.connect(pause=self._pause)
            self._pids.add(self._connection.info.backend_pid)
        return self._connection

    @property
    def cursor(self) -> Cursor:
        """The one cursor: a job looks at one result at a time."""
        if self._cursor is None:
            self._cursor = self.connection.cursor()
        return self._cursor

    @property
    def in_doubt(self) -> bool:
        """Whether owners that seem dead may only have lost their connections, as we have."""
        return self._in_doubt()

    def open(self) -> None:
        """Open it now; raises what the driver raises."""
        _ = self.connection

    @property
    def broken(self) -> bool:
        """Whether a connection was open and has died."""
        return self._connection is not None and self._connection.closed

    def tidy(self) -> None:
        """Roll back what is open; drop the connection if it does not answer. Never raises."""
        connection = self._connection
        if connection is None or connection.info.transaction_status is TransactionStatus.IDLE:
            return
        if connection.info.transaction_status in _IN_TRANSACTION:
            with contextlib.suppress(psycopg.Error):
                # Not by the driver's cursor: it forgets all prepared statements at a ROLLBACK.
                if connection.pgconn.exec_(b"ROLLBACK").status == ExecStatus.COMMAND_OK:
                    return
        self.drop()

    def drop(self) -> None:
        """Close; the next use opens a new one. Never raises."""
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            self._pids.discard(connection.info.backend_pid)
            with contextlib.suppress(psycopg.Error):
                connection.close()
