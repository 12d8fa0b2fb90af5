"""OpenClaw: its folder with a SQLite file for each agent, or, before, JSONL files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from clew.foreign.readers.openclaw.home import OpenClawHome


def find_home(home: Path) -> Path | None:
    """Return ``~/.openclaw`` if it has agents."""
    folder = home / ".openclaw"
    return folder if (folder / "agents").is_dir() else None


def open_home(path: Path) -> OpenClawHome:
    """
    Open the folder, or the one that holds it.

    :raises UsageError: if there are no agents
    """
    from clew.foreign.readers.openclaw.home import OpenClawHome  # noqa: PLC0415  (lazy: opened once)

    for folder in (path, path / ".openclaw"):
        if (folder / "agents").is_dir():
            return OpenClawHome(folder)
    raise UsageError(
        f"{path} has no data of OpenClaw: its folder has agents/ID; "
        "name that folder (usually ~/.openclaw)"
    )
