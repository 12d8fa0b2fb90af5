"""Connection of one worker."""

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

    from clew.store.postgres.dsn import Connection, Cursor, Dsn

_BACKEND_EXISTS = b"SELECT 1 FROM pg_catalog.pg_stat_activity WHERE pid = $1"
_IN_TRANSACTION = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


class WorkerConnection:
    """
    Connection that is opened on first use and dropped when it is lost.

    Used by one thread at a time.
    """

    def __init__(
        self,
        address: Dsn,
        pids: set[int],
        *,
        pause: float,
        in_doubt: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Store the address; the connection opens on first use.

        ``pids`` is the store's set of its own backends, kept up to date here. ``in_doubt``
        returns whether owners that seem dead may only have lost their connections.
        """
        self._address, self._pids, self._pause = address, pids, pause
        self._in_doubt = in_doubt
        self._closing = threading.Lock()
        self._connection: Connection | None = None
        self._cursor: Cursor | None = None

    @property
    def connection(self) -> Connection:
        """Return the open connection; raises the driver's errors if it cannot be opened."""
        if self._connection is None:
            self._connection = self._address.connect(pause=self._pause)
            self._pids.add(self._connection.info.backend_pid)
        return self._connection

    @property
    def cursor(self) -> Cursor:
        """Return the only cursor: a job reads one result at a time."""
        if self._cursor is None:
            self._cursor = self.connection.cursor()
        return self._cursor

    @property
    def is_liveness_uncertain(self) -> bool:
        """Return true if owners that seem dead may only have lost their connections."""
        return self._in_doubt()

    def open(self) -> None:
        """Open the connection now; raises the driver's errors."""
        _ = self.connection

    @property
    def is_broken(self) -> bool:
        """Return true if a connection was open and has died."""
        return self._connection is not None and self._connection.closed

    def is_stalled(self) -> bool:
        """
        Return true if the server fell silent or does not know our connection any more.

        May be called from any thread while a job is running; may take as long as
        connecting.
        """
        connection = self._connection
        if connection is None or connection.closed:
            return False  # it is being opened, which has its own time-out
        try:
            with contextlib.closing(self._address.connect()) as other:
                return (
                    other.execute(_BACKEND_EXISTS, (connection.info.backend_pid,)).fetchone()
                    is None
                )
        except psycopg.errors.ConnectionTimeout:
            return True
        except psycopg.Error:
            return False

    def abort(self) -> None:
        """Cut the connection under a waiting job; from any thread."""
        # Closing takes the lock, too: the descriptor of a closed socket may already be reused.
        with self._closing:
            if self._connection is not None and not self._connection.closed:
                shut_down_socket(self._connection)

    def reset(self) -> None:
        """Roll back any open transaction; drop an unresponsive connection. Never raises."""
        connection = self._connection
        if connection is None or connection.info.transaction_status is TransactionStatus.IDLE:
            return
        if connection.info.transaction_status in _IN_TRANSACTION:
            with contextlib.suppress(psycopg.Error):
                # Not by the driver's cursor, which forgets all prepared statements at ROLLBACK.
                if connection.pgconn.exec_(b"ROLLBACK").status == ExecStatus.COMMAND_OK:
                    return
        self.drop()

    def drop(self) -> None:
        """Close the connection; the next use opens a new one. Never raises."""
        with self._closing:
            connection, self._connection, self._cursor = self._connection, None, None
            if connection is not None:
                self._pids.discard(connection.info.backend_pid)
                with contextlib.suppress(psycopg.Error):
                    connection.close()


def shut_down_socket(connection: Connection) -> None:
    """Shut down both directions of a connection's socket; readers see its end."""
    with (
        contextlib.suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as lever,
    ):
        lever.shutdown(socket.SHUT_RDWR)
