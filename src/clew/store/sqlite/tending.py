"""What the writer's connection needs besides jobs: its lock, a look at others, a short log."""

from __future__ import annotations

import logging
import random
import time
from typing import TYPE_CHECKING

import apsw

from clew.store.sqlite.opening import JOURNAL_LIMIT, PATIENCE

if TYPE_CHECKING:
    from clew.store.sqlite.changes import Changes

#: Seconds between two looks at what other processes commit, while somebody listens.
LOOK_EVERY = 0.05
#: Seconds without a job after which the log is written back.
IDLE = 0.5
#: Pages in the log that have it written back between two batches.
CHECKPOINT_AT = 2000
#: Milliseconds that SQLite itself waits for a lock, before we look around and ask again.
_SLICE = 20

_log = logging.getLogger(__name__)


class Tending:
    """Looks after the connection that writes; used in the writer's thread only."""

    def __init__(self, connection: apsw.Connection, changes: Changes) -> None:
        self._connection = connection
        self._changes = changes
        self._seen = self._data_version()
        self._pages = 0
        self._checkpoint_at = CHECKPOINT_AT
        connection.set_busy_timeout(_SLICE)
        connection.set_wal_hook(self._committed)

    @property
    def patience(self) -> float | None:
        """Seconds without a job after which ``idle`` wants to be called."""
        if self._changes.wanted:
            return LOOK_EVERY
        return IDLE if self._pages else None

    def begin(self, cursor: apsw.Cursor) -> None:
        """
        Open a write transaction.

        :raises apsw.BusyError: while another process has been writing for all our patience
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
                time.sleep(random.uniform(0, 0.002))  # noqa: S311 - out of step with the others
        self.look()

    def look(self) -> None:
        """Tell the listeners if another process has committed since the last look."""
        # This connection makes all commits of this process, and its own do not count here.
        if self._changes.wanted and (version := self._data_version()) != self._seen:
            self._seen = version
            self._changes.publish(None)

    def after_batch(self) -> None:
        """Write the log back if it is long."""
        if self._pages >= self._checkpoint_at:
            self._checkpoint(truncate=self._pages * 4096 > JOURNAL_LIMIT)

    def idle(self) -> None:
        """Look at others, and write the log back, since nobody waits."""
        self.look()
        if self._pages:
            self._checkpoint(truncate=self._pages >= CHECKPOINT_AT)

    def _data_version(self) -> int:
        ((version,),) = self._connection.execute("PRAGMA data_version").fetchall()
        return int(version)

    def _committed(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self, *, truncate: bool) -> None:
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            total, done = self._connection.wal_checkpoint(mode=mode)
        except apsw.BusyError:  # a reader needs the log, or another process writes: later
            total, done = self._pages, 0
        except apsw.Error as error:
            _log.warning("the log could not be written back: %s", error)
            total, done = self._pages, 0
        # What a reader holds back is not tried again before the log has grown.
        self._checkpoint_at = total - done + CHECKPOINT_AT
        self._pages = 0
