"""The connection of one worker."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import TYPE_CHECKING

import psycopg
from psycopg.pq import ExecStatus, TransactionStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.store.postgres.address import Address, Connection, Cursor

_KNOWN = b"SELECT 1 FROM pg_catalog.pg_stat_activity WHERE pid = $1"
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
        self._closing = threading.Lock()
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

    def waits_in_vain(self) -> bool:
        """
        Whether the server has fallen silent, or is another one that does not know our connection.

        From any thread, while a job is under way; may take as long as connecting may.
        """
        connection = self._connection
        if connection is None or connection.closed:
            return False  # it is being opened, which has a time-out of its own
        try:
            with contextlib.closing(self._address.connect()) as other:
                return other.execute(_KNOWN, (connection.info.backend_pid,)).fetchone() is None
        except psycopg.errors.ConnectionTimeout:
            return True
        except psycopg.Error:
            return False

    def break_off(self) -> None:
        """From any thread: the job that waits for the server finds its connection cut."""
        # Closing takes the lock, too: the number of a closed socket may be another one's already.
        with self._closing:
            if self._connection is not None and not self._connection.closed:
                shut(self._connection)

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
        with self._closing:
            connection, self._connection, self._cursor = self._connection, None, None
            if connection is not None:
                self._pids.discard(connection.info.backend_pid)
                with contextlib.suppress(psycopg.Error):
                    connection.close()


def shut(connection: Connection) -> None:
    """End both directions of a connection's socket; whoever reads from it finds its end."""
    with (
        contextlib.suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as lever,
    ):
        lever.shutdown(socket.SHUT_RDWR)
