"""
Copying a store page by page, into a file that is written only where it differs.

SQLite's own backup writes every page of the copy. Here the copy is opened through a file that
compares first: over the copy of yesterday, what is written is what has changed since.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import apsw

from clew.store.sqlite.driver import rows_of
from clew.store.sqlite.handle import SqliteTx

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.store.contract import Tx

#: Instead of SQLite's own first bytes, as long as the copy is not whole: nothing opens it.
NOT_WHOLE: Final = b"Clew: unfinished"
#: In the first page: how the file is to be written and read (1: without a log beside it), and
#: a number for the owner's use, which we let tell when the copy was made.
_VERSIONS: Final = slice(18, 20)
_USER_VERSION: Final = slice(60, 64)
#: Pages between two calls of ``tell``.
_STEP: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Pages:
    """What a copy took."""

    count: int
    written: int
    size: int


class _Target:
    """The file of a copy, for SQLite: empty at first, whatever is in it."""

    def __init__(self, descriptor: int, stamp: int) -> None:
        self._descriptor = descriptor
        self._stamp = stamp.to_bytes(4, "big")
        self.size = self.written = 0
        os.pwrite(descriptor, NOT_WHOLE, 0)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802  (SQLite's names)
        return os.pread(self._descriptor, max(0, min(amount, self.size - offset)), offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        page = bytes(data) if offset else self._first(bytearray(data))
        if os.pread(self._descriptor, len(page), offset) != page:
            _write(self._descriptor, page, offset)
            self.written += 1
        self.size = max(self.size, offset + len(page))

    def _first(self, page: bytearray) -> bytes:
        page[_VERSIONS] = b"\1\1"
        page[_USER_VERSION] = self._stamp
        return bytes(page)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self.size = size

    def xFileSize(self) -> int:  # noqa: N802
        return self.size

    def xSync(self, _flags: int) -> None:  # noqa: N802
        """By whoever owns the descriptor."""

    def xLock(self, _level: int) -> None:  # noqa: N802
        """Nobody else knows the file."""

    def xUnlock(self, _level: int) -> None:  # noqa: N802
        """As ``xLock``."""

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


def _write(descriptor: int, data: bytes, offset: int) -> None:
    while data:
        done = os.pwrite(descriptor, data, offset)
        data, offset = data[done:], offset + done


class _Files(apsw.VFS):
    """Opens one target, once."""

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


def copy_pages(t: Tx, descriptor: int, *, stamp: int, tell: Callable[[int, int], None]) -> Pages:
    """
    Make an open file a copy of the snapshot, and write only the pages in which it differs.

    The file is whole once this returns, and nothing that opens until then; it is not synced.

    :param stamp: ``user_version`` of the copy, 32 bits
    :param tell: is called with how many pages are done, of how many
    :raises OSError: from writing the file
    """
    if not isinstance(t, SqliteTx):
        raise TypeError("only a store on SQLite has pages")
    target = _Target(descriptor, stamp)
    files = _Files(target)
    try:
        copy = apsw.Connection("copy", vfs=files.name)
        try:
            rows_of(copy, "PRAGMA journal_mode = OFF")
            rows_of(copy, "PRAGMA synchronous = OFF")
            count = t.copy_into(copy, step=_STEP, tell=tell)
        finally:
            copy.close()
    finally:
        apsw.unregister_vfs(files.name)
    return Pages(count=count, written=target.written, size=target.size)
