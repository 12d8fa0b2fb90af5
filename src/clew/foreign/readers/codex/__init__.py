"""
Codex: its folder with a JSONL file for each session.

::

    sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl
    archived_sessions/rollout-TIME-ID.jsonl
    session_index.jsonl                            names of sessions
    AGENTS.md, skills/, config.toml, auth.json

A line has a type and a payload: what the model saw is a ``response_item``, the rest tells how the
turn went.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.foreign.readers.codex.home import CodexHome


def find_home(home: Path) -> Path | None:
    """Return ``CODEX_HOME``, or ``~/.codex``, if it has sessions."""
    named = os.environ.get("CODEX_HOME")
    folder = Path(named) if named else home / ".codex"
    return folder if (folder / "sessions").is_dir() else None


def open_home(path: Path) -> CodexHome:
    """
    Open the folder, or one session.

    :raises UsageError: if there are no sessions
    """
    from clew.foreign.readers.codex.home import CodexHome  # noqa: PLC0415  (lazy: opened once)

    if path.is_file() and path.suffix == ".jsonl":
        return CodexHome(path.parent, [path])
    if (path / "sessions").is_dir():
        return CodexHome(path)
    if path.is_dir() and (files := sorted(path.rglob("rollout-*.jsonl"))):
        return CodexHome(path, files)
    raise UsageError(
        f"{path} has no sessions of Codex: its folder has sessions/YEAR/MONTH/DAY/rollout-….jsonl; "
        "name that folder (usually ~/.codex), or one .jsonl file"
    )
