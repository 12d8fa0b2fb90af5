"""
Page-by-page copy of a store into a file that is written only where it differs.

SQLite's own backup writes every page of the copy. Here the copy is opened through a VFS
that compares first: over an earlier copy, only the pages changed since are written.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, cast

import apsw

from clew.record import Record
from clew.store.sqlite.driver import fetch_rows
from clew.store.sqlite.tx import require_sqlite

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.store.contract import Tx

#: Replaces SQLite's first bytes while the copy is incomplete, so that nothing opens it.
INCOMPLETE_HEADER: Final = b"Clew: unfinished"
#: In the first page: the write and read versions (1: rollback journal) and the user version,
#: which stores the time of the copy.
_VERSIONS: Final = slice(18, 20)
_USER_VERSION: Final = slice(60, 64)
#: Pages between two calls of ``tell``.
_PROGRESS_PAGES: Final = 1000


class PageCopyResult(Record):
    """Size of a copy, and how many of its pages were written."""

    count: int
    written: int
    size: int


class _Target:
    """File of a copy, as SQLite sees it: empty at first, whatever it contains."""

    def __init__(self, descriptor: int, stamp: int) -> None:
        self._descriptor = descriptor
        self._stamp = stamp.to_bytes(4, "big")
        self.size = self.written = 0
        os.pwrite(descriptor, INCOMPLETE_HEADER, 0)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802  (SQLite's names)
        return os.pread(self._descriptor, max(0, min(amount, self.size - offset)), offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        page = bytes(data) if offset else self._patch_first_page(bytearray(data))
        if os.pread(self._descriptor, len(page), offset) != page:
            _write_all(self._descriptor, page, offset)
            self.written += 1
        self.size = max(self.size, offset + len(page))

    def _patch_first_page(self, page: bytearray) -> bytes:
        page[_VERSIONS] = b"\1\1"
        page[_USER_VERSION] = self._stamp
        return bytes(page)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self.size = size

    def xFileSize(self) -> int:  # noqa: N802
        return self.size

    def xSync(self, _flags: int) -> None:  # noqa: N802
        """Do nothing: the owner of the descriptor syncs the file."""

    def xLock(self, _level: int) -> None:  # noqa: N802
        """Do nothing: no other process knows the file."""

    def xUnlock(self, _level: int) -> None:  # noqa: N802
        """Do nothing, as ``xLock``."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, _op: int, _pointer: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return 4096

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0

    def xClose(self) -> None:  # noqa: N802
        os.ftruncate(self._descriptor, self.size)


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    while data:
        done = os.pwrite(descriptor, data, offset)
        data, offset = data[done:], offset + done


class _TargetVfs(apsw.VFS):
    """VFS that opens one target, once."""

    def __init__(self, target: _Target) -> None:
        self.name: Final = f"clew-pages-{id(target):x}"
        super().__init__(self.name, base="")
        self._target = target

    def xOpen(self, name: object, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        flags[1] = flags[0]
        return cast("apsw.VFSFile", self._target)  # apsw asks for its methods only

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        return False


def copy_pages(
    t: Tx, descriptor: int, *, stamp: int, tell: Callable[[int, int], None]
) -> PageCopyResult:
    """
    Make an open file a copy of the snapshot; write only the pages that differ.

    The file is complete once this returns, and cannot be opened before; it is not synced.

    :param stamp: ``user_version`` of the copy, 32 bits
    :param tell: called with the number of pages done and the total
    :raises OSError: from writing the file
    """
    tx = require_sqlite(t)
    target = _Target(descriptor, stamp)
    files = _TargetVfs(target)
    try:
        copy = apsw.Connection("copy", vfs=files.name)
        try:
            fetch_rows(copy, "PRAGMA journal_mode = OFF")
            fetch_rows(copy, "PRAGMA synchronous = OFF")
            count = tx.backup_into(copy, step=_PROGRESS_PAGES, tell=tell)
        finally:
            copy.close()
    finally:
        apsw.unregister_vfs(files.name)
    return PageCopyResult(count=count, written=target.written, size=target.size)
