"""Backups in ``CLEW_HOME/backups``."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from clew.errors import ClewError, UsageError
from clew.store.file_header import STORE, UNFINISHED, read_stamp
from clew.wire.serializers import format_timestamp

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = "backups"
DEFAULT_NAME: Final = "clew.backup"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
#: An older backup, and one that is being made: the command names them.
_RESERVED: Final = re.compile(r".*\.(\d+|partial)")


def find_file(home: Path, name: str) -> Path:
    """
    Return the path of a backup by its name; creates the folder.

    :raises UsageError: if no backup may have this name
    :raises ClewError: if the folder cannot be created
    """
    if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a backup: use letters, digits, - and _, with dots "
            "between them, and no number at the end"
        )
    folder = home / FOLDER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ClewError(
            f"{folder} cannot be made ({error.strerror}): make {home} writable for you"
        ) from error
    return folder / name


def list_backups(home: Path) -> list[dict[str, Any]]:
    """Return the backups in the folder, newest first, as programs get them."""
    folder = home / FOLDER
    if not folder.is_dir():
        return []
    found = [_describe_file(home, path) for path in folder.iterdir() if path.is_file()]
    known = [one for one in found if one is not None]
    return sorted(known, key=lambda one: (one["taken_at"], one["name"]), reverse=True)


def _describe_file(home: Path, path: Path) -> dict[str, Any] | None:
    try:
        stamp, size = read_stamp(path), path.stat().st_size
    except OSError:  # removed meanwhile
        return None
    if stamp is None or stamp in (STORE, UNFINISHED):
        return None
    return {
        "name": path.name,
        "file": str(path),
        "taken_at": format_timestamp(datetime.fromtimestamp(stamp, UTC)) or "",
        "size": size,
        "restore": shlex.join(["clew", "--home", str(home), "restore", str(path), "--replace"]),
    }
