"""
Open WebUI: its data folder with ``webui.db``, or a JSON export of chats.

A chat is a tree of messages in JSON; newer releases store each message in a table as well. Calls of
tools are items of ``output``, or ``<details>`` blocks inside of the text in older releases.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.errors import UsageError
from clew.foreign.sqlite_files import is_sqlite

if TYPE_CHECKING:
    from clew.foreign.homes import ForeignHome

DATABASE: Final = "webui.db"
_PLACES: Final = (".open-webui", "open-webui", "open-webui/backend/data", "open-webui/data")


def find_home(home: Path) -> Path | None:
    """Return ``DATA_DIR``, or a usual folder with a database."""
    named = os.environ.get("DATA_DIR", "").strip()
    folders = [Path(named)] if named else [home / place for place in _PLACES]
    return next((one for one in folders if (one / DATABASE).is_file()), None)


def open_home(path: Path) -> ForeignHome:
    """
    Open the data folder, its ``webui.db``, or a JSON export of chats.

    :raises UsageError: if there is neither a database nor an export
    """
    from clew.foreign.readers.open_webui.export import ExportHome  # noqa: PLC0415
    from clew.foreign.readers.open_webui.home import OpenWebUiHome  # noqa: PLC0415

    file = path / DATABASE if path.is_dir() else path
    if not file.is_file():
        raise UsageError(
            f"{path} is no data folder of Open WebUI: there is no {DATABASE}. "
            "Name the folder (DATA_DIR), the database, or an export of chats (.json)"
        )
    if file.suffix == ".json":
        return ExportHome(file)
    if not is_sqlite(file):
        raise UsageError(f"{file} is no SQLite database: restore it from a backup of Open WebUI")
    return OpenWebUiHome(file)
