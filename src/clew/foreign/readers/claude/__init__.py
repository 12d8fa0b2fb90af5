"""
Claude Code: its folder with a JSONL file for each session.

::

    projects/PROJECT/SESSION.jsonl
    projects/PROJECT/SESSION/subagents/agent-ID.jsonl    newer releases; else in SESSION.jsonl
    CLAUDE.md, skills/, settings.json

Lines name their parents: an edited prompt begins a branch. Each block of an answer is a line.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.foreign.readers.claude.home import ClaudeHome


def find_home(home: Path) -> Path | None:
    """Return ``CLAUDE_CONFIG_DIR``, or ``~/.claude``, if it has sessions."""
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(named) if named else home / ".claude"
    return folder if (folder / "projects").is_dir() else None


def open_home(path: Path) -> ClaudeHome:
    """
    Open the folder, one of its projects, or one session.

    :raises UsageError: if there are no sessions
    """
    from clew.foreign.readers.claude.home import ClaudeHome  # noqa: PLC0415  (lazy: opened once)

    if path.is_file() and path.suffix == ".jsonl":
        return ClaudeHome(path.parent, [path])
    if (path / "projects").is_dir():
        return ClaudeHome(path)
    if path.is_dir() and (files := sorted(path.glob("*.jsonl"))):
        return ClaudeHome(path, files)
    raise UsageError(
        f"{path} has no sessions of Claude Code: its folder has projects/PROJECT/SESSION.jsonl; "
        "name that folder (usually ~/.claude), a project's, or one .jsonl file"
    )
