"""
Identity of a store's files: SQLite keeps writing to a file that was moved or deleted.

If a file is deleted, moved or replaced while the store is in use, the next process that
opens the store gets another file. Each would acknowledge writes that the other never sees,
and a checkpoint would mix them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from clew.errors import StoreUnavailable, StoreUnusable

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.sqlite.liveness import SqliteLiveness

#: Seconds in which the log files may disappear one by one: the last process to close removes them.
_REMOVAL_SECONDS: Final = 1.0
_LOST: Final = (
    "{} was {} while it was in use: nothing is written any more; end whatever uses the store, "
    "and start again"
)


def wal_path(path: Path) -> Path:
    """Return the path of the write-ahead log: commits not yet written back."""
    return path.with_name(f"{path.name}-wal")


def shm_path(path: Path) -> Path:
    """Return the path of the shared memory: locks, and the index of the log."""
    return path.with_name(f"{path.name}-shm")


class FileIdentities:
    """Files that had the store's names when it was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = {name: _file_id(name) for name in (path, wal_path(path), shm_path(path))}

    def check_unchanged(self) -> None:
        """
        Check that they are still the same files: three ``stat`` calls.

        :raises StoreUnavailable: if one is not
        """
        for name, found in self._found.items():
            here = _file_id(name)
            if here != found and found is not None:
                happened = "deleted or moved" if here is None else "replaced"
                raise StoreUnavailable(_LOST.format(name, happened))

    @property
    def is_only_wal_missing(self) -> bool:
        """Return true if the log's content can be recovered and no other log exists."""
        log, memory = wal_path(self._path), shm_path(self._path)
        at = {name: _file_id(name) for name in self._found}
        same = at[self._path] == self._found[self._path]
        return same and at[log] is None and at[memory] in (None, self._found[memory])


def _file_id(name: Path) -> tuple[int, int] | None:
    try:
        found = name.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def reject_missing_files(path: Path, owners: SqliteLiveness) -> None:
    """
    Reject a store that is in use but lacks one of its files.

    :raises StoreUnusable: names the missing file
    """
    log, memory = wal_path(path), shm_path(path)
    if not path.exists() and log.exists() and log.stat().st_size:
        raise StoreUnusable(
            f"{path} is missing, but its log {log.name} exists and has the latest messages: put "
            "the file back, or move the log away too"
        )
    until = time.monotonic() + _REMOVAL_SECONDS
    while log.exists() != memory.exists() and owners.has_live_owner():
        if time.monotonic() > until:
            missing = memory if log.exists() else log
            raise StoreUnusable(
                f"{missing} was deleted while the store is in use: end whatever uses it, "
                "and try again"
            )
        time.sleep(0.02)
