"""Files of a store while one process builds it: lock, logs, durable renames, errors."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from clew.errors import StoreError, StoreFull, StoreInUse
from clew.file_locks import lock_descriptor

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def lock_file(path: Path) -> int:
    """
    Lock a file, created private to its user if needed; return its descriptor.

    Nothing else in this process may open and close the file while SQLite has it open.

    :raises StoreInUse: while another process builds there
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        lock_descriptor(descriptor)
        # It may have been published before we had the lock: then it is not ours to change.
        if not path.exists() or path.stat().st_ino != os.fstat(descriptor).st_ino:
            raise BlockingIOError
    except BlockingIOError:
        os.close(descriptor)
        raise StoreInUse(f"another process is writing {path}: wait for its end") from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def find_log_files(path: Path) -> Iterator[Path]:
    """Iterate over the files that SQLite keeps beside a file that is, or was, written to."""
    for ending in ("-wal", "-shm", "-journal"):
        log = path.with_name(f"{path.name}{ending}")
        if log.exists():
            yield log


def sync_directory(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def translate_os_errors(path: Path) -> Generator[None]:
    """Raise operating system errors as store errors that name ``path``."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        if error.errno in _FULL:
            raise StoreFull(
                f"there is no space left for {where}: make room and try again; nothing was changed"
            ) from error
        raise StoreError(
            f"{where} cannot be used by this user ({error.strerror}): change its owner or mode, or "
            "name another place; nothing was changed"
        ) from error
