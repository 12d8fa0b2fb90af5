"""Backup file: built beside the current one, published at the end, with older ones kept."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from clew.errors import StoreDamaged, UsageError
from clew.store.file_header import MAGIC, STORE, read_stamp
from clew.store.sqlite.page_copy import INCOMPLETE_HEADER
from clew.store.sqlite.staged_files import find_log_files, lock_file, sync_directory

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

# Follows the last page, where SQLite does not look: its header has the number of pages.
_SEAL: Final = "\nclew backup sha256 {}\n"
_SEAL_SIZE: Final = len(_SEAL.format("0" * 64))
_CHUNK: Final = 1 << 20


def write_seal(descriptor: int) -> None:
    """Append the checksum of all bytes to a finished copy."""
    size = os.fstat(descriptor).st_size
    os.pwrite(descriptor, _compute_seal(descriptor, size), size)


def verify_seal(path: Path) -> None:
    """
    Check that no bit of a backup has changed since it was made.

    :raises StoreDamaged: if one has
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = max(0, os.fstat(descriptor).st_size - _SEAL_SIZE)
        found, wanted = os.pread(descriptor, _SEAL_SIZE, size), _compute_seal(descriptor, size)
    finally:
        os.close(descriptor)
    if found[:20] != wanted[:20]:
        raise StoreDamaged("its end is missing")
    if found != wanted:
        raise StoreDamaged("its checksum is wrong")


def _compute_seal(descriptor: int, size: int) -> bytes:
    digest = hashlib.sha256()
    for place in range(0, size, _CHUNK):
        digest.update(os.pread(descriptor, min(_CHUNK, size - place), place))
    return _SEAL.format(digest.hexdigest()).encode()


def older_path(file: Path, number: int) -> Path:
    """Return the path of the previous backup (1), of the one before that (2), and so on."""
    return file.with_name(f"{file.name}.{number}")


def reject_foreign_files(file: Path, *, keep: int) -> None:
    """
    Reject a backup path, or the path of an older one, that holds another file.

    :raises UsageError: if its folder is missing, or the file is not a backup
    """
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}: create it, or name another file")
    for path in (
        file,
        partial_path(file),
        *(older_path(file, number) for number in range(1, keep)),
    ):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise UsageError(f"{path} is not a regular file: name another one")
        if path.exists() and not _may_replace(path):
            raise UsageError(f"{path} exists already and is not a backup: name another file")


def _may_replace(path: Path) -> bool:
    if path.name.endswith(".partial"):
        with path.open("rb") as file:
            return file.read(16) in (b"", MAGIC, INCOMPLETE_HEADER)
    return path.stat().st_size == 0 or read_stamp(path) not in (None, STORE)


class PartialBackup:
    """Backup under construction, at ``FILE.partial``, over the pages of an older one."""

    def __init__(self, file: Path, keep: int, descriptor: int) -> None:
        """Store the descriptor; use ``open_partial``."""
        self._file, self._keep = file, keep
        self.path: Final = partial_path(file)
        #: The open file, locked.
        self.descriptor: Final = descriptor

    def publish(self) -> list[Path]:
        """Make this the current backup, durably; return the kept older ones, newest first."""
        os.fsync(self.descriptor)
        for number in range(self._keep - 1, 1, -1):
            with suppress(FileNotFoundError):
                older_path(self._file, number - 1).replace(older_path(self._file, number))
        if self._keep > 1 and self._file.exists():
            _link_or_rename(self._file, older_path(self._file, 1))
        self.path.replace(self._file)
        _delete_oldest(self._file, self._keep)
        sync_directory(self._file.parent)
        return [path for n in range(1, self._keep) if (path := older_path(self._file, n)).exists()]


def partial_path(file: Path) -> Path:
    """Return the path at which a backup is built."""
    return file.with_name(f"{file.name}.partial")


@contextmanager
def open_partial(file: Path, *, keep: int) -> Generator[PartialBackup]:
    """
    Prepare the next backup, over the oldest of ``keep``, which would be deleted anyway.

    The newest backup is not touched before ``publish``. If the block fails, the partial
    file is removed.

    :raises StoreInUse: while another backup is being made there
    """
    path = partial_path(file)
    if keep > 1 and not path.exists():
        with suppress(FileNotFoundError):
            older_path(file, keep - 1).replace(path)
    descriptor = lock_file(path)
    try:
        yield PartialBackup(file, keep, descriptor)
    except BaseException:
        for name in (path, *find_log_files(path)):
            name.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _link_or_rename(file: Path, name: Path) -> None:
    # So that a backup always exists under the main name.
    between = name.with_name(f"{name.name}.new")
    between.unlink(missing_ok=True)
    try:
        between.hardlink_to(file)
    except OSError:  # a file system without hard links, as on a memory stick
        file.replace(name)
    else:
        between.replace(name)


def _delete_oldest(file: Path, keep: int) -> None:
    number = keep
    while (path := older_path(file, number)).is_file() and read_stamp(path) is not None:
        path.unlink()
        number += 1
