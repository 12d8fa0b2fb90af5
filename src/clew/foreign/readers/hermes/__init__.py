"""
Hermes Agent: its home with ``state.db``, and the transcripts of releases before that.

::

    state.db                    sessions, messages and, in newer releases, routes of chats
    sessions/ID.jsonl           messages, one per line: releases before the database
    sessions/session_ID.json    messages of one session as they were last sent
    sessions/sessions.json      routes of chats, by session key
    memories/, skills/, cron/jobs.json, pairing/, config.yaml, .env, auth.json

A compaction ends a session and continues in a child session that begins with a summary, or (newer
releases) marks the messages before it as compacted. Both become one conversation here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.errors import UsageError
from clew.foreign.sqlite_files import is_sqlite

if TYPE_CHECKING:
    from clew.foreign.readers.hermes.home import HermesHome

DATABASE: Final = "state.db"
SESSIONS: Final = "sessions"


def find_home(home: Path) -> Path | None:
    """Return ``HERMES_HOME``, or the usual folder if there is one."""
    named = os.environ.get("HERMES_HOME", "").strip()
    folder = Path(named) if named else home / ".hermes"
    return folder if _is_home(folder) else None


def open_home(path: Path) -> HermesHome:
    """
    Open a home folder, or its ``state.db``.

    :raises UsageError: if there is neither a database nor transcripts
    """
    from clew.foreign.readers.hermes.home import HermesHome  # noqa: PLC0415

    folder = path if path.is_dir() else path.parent
    if path.is_dir() and not _is_home(path):
        raise UsageError(
            f"{path} is no home of Hermes Agent: it has neither {DATABASE} nor a folder {SESSIONS}"
        )
    database = folder / DATABASE if path.is_dir() else path
    if database.exists() and database.stat().st_size and not is_sqlite(database):
        raise UsageError(
            f"{database} is no SQLite database: restore it from a backup of Hermes Agent"
        )
    if not path.exists():
        raise UsageError(f"there is no {path}: name the folder or the {DATABASE} of Hermes Agent")
    return HermesHome(folder, database)


def _is_home(folder: Path) -> bool:
    return (folder / DATABASE).is_file() or (folder / SESSIONS).is_dir()
