"""
nanobot: its home with sessions as JSONL.

::

    sessions/KEY.jsonl                   older releases
    sessions/WORKSPACE/BASE64.jsonl      newer ones, with BASE64.checkpoint.json of a running turn
    WORKSPACE/sessions/…                 releases between them
    config.json, pairing.json, WORKSPACE/{memory/MEMORY.md, USER.md, skills/, cron/jobs.json}

The first line of a session has its key, how many messages are summarised away, and the last
summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from clew.foreign.readers.nanobot.home import NanobotHome


def find_home(home: Path) -> Path | None:
    """Return ``~/.nanobot`` if there is one."""
    folder = home / ".nanobot"
    return folder if folder.is_dir() else None


def open_home(path: Path) -> NanobotHome:
    """
    Open a home folder, its ``config.json``, or one session.

    :raises UsageError: if there is neither a session nor a configuration
    """
    from clew.foreign.readers.nanobot.home import NanobotHome  # noqa: PLC0415

    if path.is_file() and path.suffix == ".jsonl":
        return NanobotHome(path.parent, [path])
    folder = path if path.is_dir() else path.parent
    home = NanobotHome(folder)
    if not path.exists() or (not home.has_sessions and not (folder / "config.json").is_file()):
        raise UsageError(
            f"{path} is no home of nanobot: it has neither config.json nor sessions/*.jsonl"
        )
    return home
