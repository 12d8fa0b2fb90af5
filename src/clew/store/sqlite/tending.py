"""What the writer's connection needs besides jobs: its lock, a look at others, a short log."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import apsw
import structlog

from clew.errors import StoreUnavailable
from clew.store.sqlite.driver import Cursor, rows_of
from clew.store.sqlite.opening import JOURNAL_LIMIT, PATIENCE

if TYPE_CHECKING:
    from clew.store.sqlite.changes import Changes
    from clew.store.sqlite.names import Names

#: Seconds between two looks at what other processes commit, while somebody listens.
LOOK_EVERY = 0.05
#: Seconds without a commit after which the log is written back.
IDLE = 0.5
#: Pages in the log that have it written back between two batches.
CHECKPOINT_AT = 4000
#: Milliseconds that SQLite itself waits for a lock, before we look around and ask again.
_SLICE = 20

_log = structlog.get_logger(__name__)


class Tending:
    """Looks after the connection that writes; used in the writer's thread only."""

    def __init__(self, connection: apsw.Connection, changes: Changes) -> None:
        self._connection = connection
        self._changes = changes
        self._seen: int | None = None
        self._pages = 0
        self._quiet_since = time.monotonic()
        self._checkpoint_at = CHECKPOINT_AT
        connection.set_busy_timeout(_SLICE)
        connection.set_wal_hook(self._committed)

    @property
    def patience(self) -> float | None:
        """Seconds without a job after which ``idle`` wants to be called."""
        if self._changes.wanted:
            return LOOK_EVERY
        return IDLE if self._pages else None

    def let_go_if_lost(self, names: Names) -> None:
        """
        See that the store's files are still there: no write-back at the end harms them otherwise.

        :raises StoreUnavailable: if one of them is not; nothing may be written from now on
        """
        try:
            names.check()
        except StoreUnavailable:
            if names.only_the_log_is_gone:
                self._checkpoint()
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            raise

    def begin(self, cursor: Cursor) -> None:
        """
        Open a write transaction.

        :raises apsw.BusyError: if others have been writing for all our patience
        """
        until = time.monotonic() + PATIENCE
        while True:
            try:
                cursor.execute("BEGIN IMMEDIATE")
                break
            except apsw.BusyError:
                if time.monotonic() > until:
                    raise
                self.look()
                time.sleep(random.uniform(0, 0.002))  # out of step with the others
        self.look()

    def commit(self, cursor: Cursor) -> None:
        """
        Commit the transaction.

        :raises apsw.BusyError: without WAL, if others have been reading for all our patience
        """
        until = time.monotonic() + PATIENCE
        while True:
            try:
                cursor.execute("COMMIT")
                break
            except apsw.BusyError:
                if time.monotonic() > until or not self._connection.in_transaction:
                    raise
                time.sleep(random.uniform(0, 0.002))

    def look(self) -> None:
        """Tell the listeners if another process has committed since the last look."""
        if not self._changes.wanted:
            return
        try:
            # This connection makes all commits of this process, and its own do not count here.
            ((version,),) = rows_of(self._connection, "PRAGMA data_version")
        except apsw.Error:  # the next job meets the same trouble and can report it
            return
        if version != self._seen:
            self._seen = version
            self._changes.publish(None)

    def after_batch(self) -> None:
        """Write the log back if it is long."""
        if self._pages >= self._checkpoint_at:
            self._checkpoint()

    def idle(self) -> None:
        """Look at others, and write the log back if nobody has committed for a while."""
        self.look()
        if self._pages and time.monotonic() - self._quiet_since >= IDLE:
            self._checkpoint()

    def _committed(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._pages = pages
        self._quiet_since = time.monotonic()
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        # A log that has been written back is used again from its start, and cut to the limit then.
        # Readers can prevent that for long: a log beyond the limit waits for them a moment.
        long = self._pages * 4096 > JOURNAL_LIMIT
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if long else apsw.SQLITE_CHECKPOINT_PASSIVE
        left = self._pages
        try:
            total, done = self._connection.wal_checkpoint(mode=mode)
            left = total - done
        except apsw.BusyError:  # a reader or another process was in the way: later
            pass
        except apsw.Error as error:
            _log.warning("log_not_written_back", error=str(error))
        # What could not be written back is tried again when idle, or when the log has grown.
        self._pages = left
        self._quiet_since = time.monotonic()
        self._checkpoint_at = left + CHECKPOINT_AT
