"""Maintenance of the write connection: its lock, other processes' commits, checkpoints."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import apsw
import structlog

from clew.errors import StoreUnavailable
from clew.store.sqlite.driver import Cursor, fetch_rows
from clew.store.sqlite.opening import JOURNAL_LIMIT, LOCK_TIMEOUT

if TYPE_CHECKING:
    from clew.store.sqlite.changes import SqliteChangeFeed
    from clew.store.sqlite.file_identity import FileIdentities

#: Seconds between two polls for other processes' commits, while there are listeners.
POLL_INTERVAL = 0.05
#: Seconds without a commit after which the log is written back.
IDLE_SECONDS = 0.5
#: From this many pages the log is written back between two batches.
CHECKPOINT_AT = 4000
#: Milliseconds that SQLite itself waits for a lock, before we poll for changes and retry.
_BUSY_TIMEOUT_MS = 20

_log = structlog.get_logger(__name__)


class WriterMaintenance:
    """Maintenance of the write connection; used in the writer's thread only."""

    def __init__(self, connection: apsw.Connection, changes: SqliteChangeFeed) -> None:
        self._connection = connection
        self._changes = changes
        self._seen: int | None = None
        self._pages = 0
        self._quiet_since = time.monotonic()
        self._checkpoint_at = CHECKPOINT_AT
        connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
        connection.set_wal_hook(self._on_commit)

    @property
    def poll_timeout(self) -> float | None:
        """Return the seconds without a job after which to call ``run_idle``."""
        if self._changes.has_listeners:
            return POLL_INTERVAL
        return IDLE_SECONDS if self._pages else None

    def check_files(self, names: FileIdentities) -> None:
        """
        Check that the store's files are still there.

        If not, the checkpoint at close is disabled, since it could harm the new files.

        :raises StoreUnavailable: if a file is gone; nothing may be written from now on
        """
        try:
            names.check_unchanged()
        except StoreUnavailable:
            if names.is_only_wal_missing:
                self._run_checkpoint()
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            raise

    def begin(self, cursor: Cursor) -> None:
        """
        Open a write transaction.

        :raises apsw.BusyError: if other processes kept writing until the time-out
        """
        until = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                cursor.execute("BEGIN IMMEDIATE")
                break
            except apsw.BusyError:
                if time.monotonic() > until:
                    raise
                self.poll_changes()
                time.sleep(random.uniform(0, 0.002))  # jitter
        self.poll_changes()

    def commit(self, cursor: Cursor) -> None:
        """
        Commit the transaction.

        :raises apsw.BusyError: without WAL, if other processes kept reading until the
            time-out
        """
        until = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                cursor.execute("COMMIT")
                break
            except apsw.BusyError:
                if time.monotonic() > until or not self._connection.in_transaction:
                    raise
                time.sleep(random.uniform(0, 0.002))

    def poll_changes(self) -> None:
        """Notify the listeners if another process has committed since the last poll."""
        if not self._changes.has_listeners:
            return
        try:
            # Commits of this process are all made here, and do not change data_version.
            ((version,),) = fetch_rows(self._connection, "PRAGMA data_version")
        except apsw.Error:  # the next job hits the same error and can report it
            return
        if version != self._seen:
            self._seen = version
            self._changes.publish(None)

    def checkpoint_if_long(self) -> None:
        """Write the log back if it is long."""
        if self._pages >= self._checkpoint_at:
            self._run_checkpoint()

    def run_idle(self) -> None:
        """Poll for changes, and write the log back after a while without a commit."""
        self.poll_changes()
        if self._pages and time.monotonic() - self._quiet_since >= IDLE_SECONDS:
            self._run_checkpoint()

    def _on_commit(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._pages = pages
        self._quiet_since = time.monotonic()
        return apsw.SQLITE_OK

    def _run_checkpoint(self) -> None:
        # A log that has been written back is reused from its start, and then cut to the limit.
        # Readers can prevent that for long: with a log beyond the limit, wait for them a moment.
        long = self._pages * 4096 > JOURNAL_LIMIT
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if long else apsw.SQLITE_CHECKPOINT_PASSIVE
        left = self._pages
        try:
            total, done = self._connection.wal_checkpoint(mode=mode)
            left = total - done
        except apsw.BusyError:  # blocked by a reader or another process: later
            pass
        except apsw.Error as error:
            _log.warning("log_not_written_back", error=str(error))
        # Frames that could not be written back are retried when idle, or when the log has grown.
        self._pages = left
        self._quiet_since = time.monotonic()
        self._checkpoint_at = left + CHECKPOINT_AT
