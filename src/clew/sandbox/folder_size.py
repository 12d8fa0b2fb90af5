"""The size of a folder on the disk, for the gateway and for supervisors."""

from __future__ import annotations

import os
import stat

from clew.sandbox.beneath import open_folder

#: Bytes that a name takes by itself, so that empty files are not free.
_ENTRY_SIZE = 1024


def measure_folder(root: int, *, at_most: int, links: bool = True) -> int:
    """
    Return the bytes that everything in an open folder takes; stops counting after ``at_most``.

    :raises OSError: with the path of a folder that cannot be looked into
    """
    total, waiting = 0, ["."]
    while waiting and total <= at_most:
        path = waiting.pop()
        try:
            with open_folder(root, path, links=links) as folder:
                total += _add_up(folder, "" if path == "." else f"{path}/", waiting)
        except FileNotFoundError:  # removed in between
            continue
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error
    return total


def _add_up(folder: int, prefix: str, folders: list[str]) -> int:
    """Return the bytes of all, of which there may be a million; add the folders to a list."""
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if (state := _read_state(entry)) is None:
                continue
            total += _ENTRY_SIZE + state.st_blocks * 512
            if stat.S_ISDIR(state.st_mode):
                folders.append(prefix + entry.name)
    return total


def _read_state(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # removed in between
        return None
