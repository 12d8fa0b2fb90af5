"""The file of a backup: built beside, put in place at the end, with older ones behind it."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from clew.errors import StoreDamaged, UsageError
from clew.store.sqlite.exclusive import held, logs_of, sync_folder
from clew.store.sqlite.opening import SIGNATURE
from clew.store.sqlite.pages import NOT_WHOLE

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

#: ``user_version`` of what is no backup but a store, and of a backup that is not finished.
STORE, UNFINISHED = 0, 1
_MAGIC: Final = b"SQLite format 3\0"
# Stands behind the last page, where SQLite does not look: its header tells how many there are.
_SEAL: Final = "\nclew backup sha256 {}\n"
_SEAL_SIZE: Final = len(_SEAL.format("0" * 64))
_CHUNK: Final = 1 << 20


def stamp_of(path: Path) -> int | None:
    """
    When the store in a file was copied, in seconds since the epoch, or ``STORE``, ``UNFINISHED``.

    ``None`` if the file is no database of ours. Only its first bytes are looked at.
    """
    with path.open("rb") as file:
        header = file.read(100)
    ours = header[:16] == _MAGIC and header[68:72] == SIGNATURE.to_bytes(4, "big")
    return int.from_bytes(header[60:64], "big") if ours else None


def seal(descriptor: int) -> None:
    """Write at the end of a finished copy what all bytes before add up to."""
    size = os.fstat(descriptor).st_size
    os.pwrite(descriptor, _sealed(descriptor, size), size)


def check_seal(path: Path) -> None:
    """
    Return if not a bit of a backup has changed since it was made.

    :raises StoreDamaged: else
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = max(0, os.fstat(descriptor).st_size - _SEAL_SIZE)
        found, wanted = os.pread(descriptor, _SEAL_SIZE, size), _sealed(descriptor, size)
    finally:
        os.close(descriptor)
    if found[:20] != wanted[:20]:
        raise StoreDamaged("its end is missing")
    if found != wanted:
        raise StoreDamaged("its checksum is wrong")


def _sealed(descriptor: int, size: int) -> bytes:
    digest = hashlib.sha256()
    for place in range(0, size, _CHUNK):
        digest.update(os.pread(descriptor, min(_CHUNK, size - place), place))
    return _SEAL.format(digest.hexdigest()).encode()


def older(file: Path, number: int) -> Path:
    """The name of the backup before (1), the one before that (2) …"""
    return file.with_name(f"{file.name}.{number}")


def refuse_other(file: Path, *, keep: int) -> None:
    """
    Refuse to put a backup, or one of the older ones, where something else is.

    :raises UsageError: if there is no folder for it, or the file is no backup
    """
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}: make it, or name another file")
    for path in (file, partial(file), *(older(file, number) for number in range(1, keep))):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise UsageError(f"{path} is no plain file: name another one")
        if path.exists() and not _may_replace(path):
            raise UsageError(f"{path} is there already and is no backup: name another file")


def _may_replace(path: Path) -> bool:
    if path.name.endswith(".partial"):
        with path.open("rb") as file:
            return file.read(16) in (b"", _MAGIC, NOT_WHOLE)
    return path.stat().st_size == 0 or stamp_of(path) not in (None, STORE)


class Unfinished:
    """A backup under way, at ``FILE.partial``, with the one that it is made over."""

    def __init__(self, file: Path, keep: int, descriptor: int) -> None:
        """Use ``begun``."""
        self._file, self._keep = file, keep
        self.path: Final = partial(file)
        #: The open file, locked.
        self.descriptor: Final = descriptor

    def put_in_place(self) -> list[Path]:
        """Make it the backup, durably; the older ones that are kept, the newest first."""
        os.fsync(self.descriptor)
        for number in range(self._keep - 1, 1, -1):
            with suppress(FileNotFoundError):
                older(self._file, number - 1).replace(older(self._file, number))
        if self._keep > 1 and self._file.exists():
            _name_twice(self._file, older(self._file, 1))
        self.path.replace(self._file)
        _forget_oldest(self._file, self._keep)
        sync_folder(self._file.parent)
        return [path for n in range(1, self._keep) if (path := older(self._file, n)).exists()]


def partial(file: Path) -> Path:
    """Where a backup is built."""
    return file.with_name(f"{file.name}.partial")


@contextmanager
def begun(file: Path, *, keep: int) -> Generator[Unfinished]:
    """
    A place for the next backup: over the oldest of ``keep``, which would be given up anyway.

    The newest is not touched before ``put_in_place``. If the block fails, nothing of it stays.

    :raises StoreInUse: while another backup is being made there
    """
    path = partial(file)
    if keep > 1 and not path.exists():
        with suppress(FileNotFoundError):
            older(file, keep - 1).replace(path)
    descriptor = held(path)
    try:
        yield Unfinished(file, keep, descriptor)
    except BaseException:
        for name in (path, *logs_of(path)):
            name.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _name_twice(file: Path, name: Path) -> None:
    # So that there is no moment without a backup under the name that people know.
    between = name.with_name(f"{name.name}.new")
    between.unlink(missing_ok=True)
    try:
        between.hardlink_to(file)
    except OSError:  # a file system without hard links, as on a memory stick
        file.replace(name)
    else:
        between.replace(name)


def _forget_oldest(file: Path, keep: int) -> None:
    number = keep
    while (path := older(file, number)).is_file() and stamp_of(path) is not None:
        path.unlink()
        number += 1
