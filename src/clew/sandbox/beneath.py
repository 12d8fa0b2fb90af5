"""
Opening of files by descriptor, never outside of a folder.

``openat2`` lets the kernel refuse every way out, while it resolves the path: a link that is
swapped in between cannot win. Elsewhere each component is opened by itself and no link is followed.
"""

from __future__ import annotations

import errno
import functools
import os
import struct
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

#: The same number on every architecture that has the call.
_SYS_OPENAT2: Final = 437
_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_BENEATH: Final = 0x08
#: The kernel gives up while something else renames folders of the path.
_ATTEMPTS: Final = 32
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def open_beneath(root: int, path: str, flags: int, mode: int = 0, *, links: bool = True) -> int:
    """
    Open a relative path that stays below the folder ``root``; return its descriptor.

    Without ``links`` no symbolic link is followed.

    :raises OSError: as ``os.open``; ``EXDEV`` or ``ELOOP`` where it leads out
    """
    opener = _find_opener() if links else open_by_component
    return opener(root, path, flags | os.O_CLOEXEC, mode)


@contextmanager
def open_folder(
    root: int, path: str, *, create: bool = False, links: bool = True
) -> Generator[int]:
    """Open a folder below ``root``, and close it at the end; ``create`` makes what is missing."""
    if create:
        _make_folders(root, path, links=links)
    descriptor = open_beneath(root, path, _DIRECTORY, links=links)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _make_folders(root: int, path: str, *, links: bool) -> None:
    made = ""
    for part in path.split("/"):
        parent, made = made or ".", f"{made}/{part}" if made else part
        with open_folder(root, parent, links=links) as folder:
            try:
                os.mkdir(part, 0o755, dir_fd=folder)
            except FileExistsError:
                continue


@functools.cache
def _find_opener() -> Callable[[int, str, int, int], int]:
    """Return the kernel's way, if it has one: old kernels and some containers refuse it."""
    if sys.platform != "linux":
        return open_by_component
    here = os.open(".", _DIRECTORY)
    try:
        os.close(open_by_kernel(here, ".", _DIRECTORY))
    except OSError:
        return open_by_component
    else:
        return open_by_kernel
    finally:
        os.close(here)


def open_by_kernel(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Open with ``openat2``: links are followed as long as they stay below ``root``."""
    how = struct.pack("QQQ", flags, mode, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    name, found, code = os.fsencode(path), -1, 0
    for _ in range(_ATTEMPTS):
        found, code = _call_kernel(_SYS_OPENAT2, root, name, how, len(how))
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    if code:
        raise OSError(code, os.strerror(code), path)
    return found


def _call_kernel(number: int, *arguments: object) -> tuple[int, int]:
    """Make a system call; return its result and the number of its error, 0 if there is none."""
    # Every program imports this module, few open a file with it: the import takes 5 ms.
    import ctypes  # noqa: PLC0415

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    found: int = call(number, *arguments)
    return found, ctypes.get_errno() if found < 0 else 0


def open_by_component(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Open one component after the other; a link anywhere is refused."""
    *folders, last = path.split("/")
    current = os.dup(root)
    try:
        for part in folders:
            inner = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = inner
        return os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=current)
    finally:
        os.close(current)
