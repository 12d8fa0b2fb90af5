"""The connection of one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg.pq import ExecStatus, TransactionStatus

if TYPE_CHECKING:
    from clew.store.postgres.address import Address, Connection, Cursor


class Link:
    """
    One connection: opened when it is first needed, dropped when it is lost.

    Used by one thread at a time.
    """

    def __init__(self, address: Address, pids: set[int]) -> None:
        """``pids`` is the store's set of its own backends, kept up to date here."""
        self._address, self._pids = address, pids
        self._connection: Connection | None = None
        self._cursor: Cursor | None = None

    @property
    def connection(self) -> Connection:
        """The open connection; raises what the driver raises while opening it."""
        if self._connection is None:
            self._connection = self._address.connect()
            self._pids.add(self._connection.info.backend_pid)
        return self._connection

    @property
    def cursor(self) -> Cursor:
        """The one cursor: a job looks at one result at a time."""
        if self._cursor is None:
            self._cursor = self.connection.cursor()
        return self._cursor

    @property
    def broken(self) -> bool:
        """Whether a connection was open and has died."""
        return self._connection is not None and self._connection.closed

    def tidy(self) -> None:
        """Roll back what is open; drop the connection if it does not answer."""
        connection = self._connection
        if connection is None:
            return
        status = connection.info.transaction_status
        if status is TransactionStatus.IDLE and not connection.closed:
            return
        if status is TransactionStatus.UNKNOWN or status is TransactionStatus.ACTIVE:
            self.drop()
            return
        try:
            # Past the driver's cursor, which would forget all prepared statements at a ROLLBACK.
            result = connection.pgconn.exec_(b"ROLLBACK")
        except psycopg.Error:
            self.drop()
            return
        if result.status != ExecStatus.COMMAND_OK:
            self.drop()

    def drop(self) -> None:
        """Close; the next use opens a new one."""
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            self._pids.discard(connection.info.backend_pid)
            connection.close()
