"""Folders of other systems, made from the samples."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from clew.foreign.conversations import ForeignConversation, ForeignMessage, ForeignProblem
from clew.foreign.registry import SYSTEMS

if TYPE_CHECKING:
    from clew.foreign.homes import ForeignHome

SAMPLES = Path(__file__).with_name("samples")


def list_sampled_systems() -> list[str]:
    """Return the systems of which there is a sample."""
    return [system for system in SYSTEMS if (SAMPLES / system.replace("-", "_")).is_dir()]


def copy_sample(name: str, to: Path) -> Path:
    """Copy a sample of the suite."""
    return copy_folder(SAMPLES / name, to)


def copy_folder(sample: Path, to: Path) -> Path:
    """
    Copy a sample.

    Its ``.sql`` files become databases (``a.sql`` becomes ``a.db``), ``dotenv`` becomes ``.env``.
    """
    folder = to / sample.name
    shutil.copytree(sample, folder)
    for dump in folder.rglob("*.sql"):
        file = dump.with_suffix("")
        file = file if file.suffix else dump.with_suffix(".db")
        with closing(sqlite3.connect(file)) as database:
            database.execute("PRAGMA synchronous = OFF")
            database.executescript(dump.read_text(encoding="utf-8"))
        dump.unlink()
    if (folder / "dotenv").exists():
        (folder / "dotenv").rename(folder / ".env")
    return folder


def conversations(home: ForeignHome, *, since: int = 0) -> list[ForeignConversation]:
    """Return the conversations of a home that has no problems."""
    found = list(home.iter_conversations(since=since))
    assert not [one for one in found if isinstance(one, ForeignProblem)]
    return [one for one in found if isinstance(one, ForeignConversation)]


def check_conversation(one: ForeignConversation) -> None:
    """Check that ids are unique, and that each result has its call before it."""
    names = [item.id for item in one.items]
    assert len(set(names)) == len(names)
    called: set[str] = set()
    for item in one.items:
        if isinstance(item, ForeignMessage):
            called |= {call.id for call in item.calls}
            assert {result.call_id for result in item.results} <= called


def list_tree(folder: Path) -> dict[str, int]:
    """Return the files of a folder with their times of change."""
    return {
        str(file.relative_to(folder)): file.stat().st_mtime_ns
        for file in folder.rglob("*")
        if file.is_file()
    }
