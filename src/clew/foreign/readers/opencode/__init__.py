"""
OpenCode: its data folder with a database, or, before, a JSON file for each record.

::

    opencode.db                            tables session, message and part
    storage/session/PROJECT/SESSION.json   releases before the database
    storage/message/SESSION/MESSAGE.json
    storage/part/MESSAGE/PART.json
    project/NAME/storage/session/…         the first releases
    auth.json                              names of secrets

Settings, ``AGENTS.md`` and skills are in a folder of their own, ``~/.config/opencode``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.foreign.readers.opencode.home import OpenCodeHome

DATABASE: Final = "opencode.db"
_USUAL: Final = ".local/share/opencode"


def find_home(home: Path) -> Path | None:
    """Return the folder under ``XDG_DATA_HOME``, or the usual one, if it has sessions."""
    named = os.environ.get("XDG_DATA_HOME")
    folder = Path(named) / "opencode" if named else home / _USUAL
    return folder if _is_home(folder) else None


def open_home(path: Path) -> OpenCodeHome:
    """
    Open the data folder, its database, or the home folder of a person.

    :raises UsageError: if there are no sessions
    """
    from clew.foreign.readers.opencode.home import OpenCodeHome  # noqa: PLC0415  (lazy: opened once)

    if path.is_file() and path.suffix == ".db":
        return OpenCodeHome(path.parent, path)
    for folder in (path, path / _USUAL):
        if _is_home(folder):
            return OpenCodeHome(folder, folder / DATABASE)
    raise UsageError(
        f"{path} has no sessions of OpenCode: its folder has {DATABASE} or storage/session; "
        f"name that folder (usually ~/{_USUAL}), or the database"
    )


def _is_home(folder: Path) -> bool:
    places = (DATABASE, "storage/session", "project")
    return any((folder / place).exists() for place in places)
