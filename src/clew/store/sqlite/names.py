"""
The files of a store under their names: SQLite writes on into a file that is not there any more.

Deleted, moved or replaced while the store is in use, a file is another one for whoever opens the
store next. Both would acknowledge what the other never sees, and a write-back would mix them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from clew.errors import StoreUnavailable, StoreUnusable

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.sqlite.owners import Owners

#: Seconds for which two files may be on their way: whoever closes last removes one after the other.
_ON_THE_WAY: Final = 1.0
_LOST: Final = (
    "{} was {} while it was in use: nothing is written any more; end whatever uses the store, "
    "and start again"
)


def log_of(path: Path) -> Path:
    """The write-ahead log: what was committed and not yet written back."""
    return path.with_name(f"{path.name}-wal")


def memory_of(path: Path) -> Path:
    """What all who have the store open share: their locks, and where in the log is what."""
    return path.with_name(f"{path.name}-shm")


class Names:
    """What stood under the names when the store was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = {name: _file(name) for name in (path, log_of(path), memory_of(path))}

    def check(self) -> None:
        """
        See whether they are the same files: three looks at a folder.

        :raises StoreUnavailable: if one is not
        """
        for name, found in self._found.items():
            here = _file(name)
            if here != found and found is not None:
                happened = "deleted or moved" if here is None else "replaced"
                raise StoreUnavailable(_LOST.format(name, happened))

    @property
    def only_the_log_is_gone(self) -> bool:
        """Whether what it held is still to be had, and nobody else has begun another one."""
        log, memory = log_of(self._path), memory_of(self._path)
        at = {name: _file(name) for name in self._found}
        same = at[self._path] == self._found[self._path]
        return same and at[log] is None and at[memory] in (None, self._found[memory])


def _file(name: Path) -> tuple[int, int] | None:
    try:
        found = name.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def refuse_torn(path: Path, owners: Owners) -> None:
    """
    Refuse a store of which a file is missing that somebody is using.

    :raises StoreUnusable: then; says which
    """
    log, memory = log_of(path), memory_of(path)
    if not path.exists() and log.exists() and log.stat().st_size:
        raise StoreUnusable(
            f"{path} is gone, but its log {log.name} is there, with what was said last: "
            "put the file back, or move the log away too"
        )
    until = time.monotonic() + _ON_THE_WAY
    while log.exists() != memory.exists() and owners.anybody():
        if time.monotonic() > until:
            missing = memory if log.exists() else log
            raise StoreUnusable(
                f"{missing} was deleted while the store is in use: end whatever uses it, "
                "and try again"
            )
        time.sleep(0.02)
