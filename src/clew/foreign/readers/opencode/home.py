"""Home of OpenCode."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.core.payload import as_object, as_text
from clew.foreign.conversations import ForeignConversation, ForeignProblem
from clew.foreign.folders import (
    find_skills,
    get_nested,
    list_secret_keys,
    read_json,
    read_json_with_comments,
    read_memory,
)
from clew.foreign.homes import ForeignSecret, ForeignSetting, PlainHome
from clew.foreign.jsonl import is_recent
from clew.foreign.readers.opencode.database import query_messages, query_secrets, query_sessions
from clew.foreign.readers.opencode.files import list_files, read_first, read_messages
from clew.foreign.readers.opencode.messages import read_items
from clew.foreign.readers.opencode.records import find_sources
from clew.foreign.sqlite_files import ForeignDatabase, explain_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.foreign.homes import ForeignMemory, ForeignSkill, Found
    from clew.foreign.readers.opencode.records import OpenCodeMessage, OpenCodeSession

_SETTINGS: Final = ("opencode.json", "opencode.jsonc", "config.json")
_LOGINS: Final = ("auth.json", "mcp-auth.json")


class OpenCodeHome(PlainHome):
    """The data folder of OpenCode, and the folder of its settings."""

    def __init__(self, folder: Path, database: Path) -> None:
        self._folder = folder
        self._config = _find_settings(folder)
        self._database = ForeignDatabase(database) if database.exists() else None
        self.description = f"OpenCode, sessions in {folder}"

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        """Yield the sessions of the database, then those that are only in files."""
        seen = set[str]()
        try:
            yield from self._read_database(since, seen)
        except sqlite3.Error as error:
            yield ForeignProblem(place=str(self._folder), reason=explain_error(error))
        yield from self._read_files(since, seen)

    def _read_database(self, since: int, seen: set[str]) -> Iterator[Found]:
        database = self._database
        if database is None:
            return
        sessions, begun = database.read(query_sessions)
        sources = find_sources(sessions, begun)
        seen.update(begun)
        for session in sessions:
            if session.updated >= since:
                name = session.id
                messages = database.read(lambda c, name=name: query_messages(c, name))
                yield from _make_conversation(session, messages, sources)

    def _read_files(self, since: int, seen: set[str]) -> Iterator[Found]:
        files = [one for one in list_files(self._folder) if one.session.id not in seen]
        first = {one.session.id: at for one in files if (at := read_first(one)) is not None}
        sources = find_sources([one.session for one in files], first)
        for file in files:
            if file.session.updated >= since:
                yield from _make_conversation(file.session, read_messages(file), sources)

    def list_memory(self) -> Sequence[ForeignMemory]:
        return read_memory(self._config, "AGENTS.md")

    def list_skills(self) -> Sequence[ForeignSkill]:
        return [skill for name in ("skills", "skill") for skill in find_skills(self._config / name)]

    def list_settings(self) -> Sequence[ForeignSetting]:
        told = self._read_settings()
        found: list[ForeignSetting] = []
        provider, _, model = as_text(told.get("model")).partition("/")
        if model:
            value = f"{provider}:{model}"
            found.append(ForeignSetting(origin="model", name="model.name", value=value))
        auto = get_nested(told, "compaction.auto")
        if isinstance(auto, bool):
            value = str(auto).lower()
            found.append(
                ForeignSetting(origin="compaction.auto", name="compaction.enabled", value=value)
            )
        return found

    def _read_settings(self) -> dict[str, object]:
        told: dict[str, object] = {}
        for name in _SETTINGS:
            told = as_object(read_json_with_comments(self._config / name)) | told
        return told

    def list_secrets(self) -> Sequence[ForeignSecret]:
        found = list(list_secret_keys(self._read_settings(), "opencode.json"))
        for name in _LOGINS:
            # Each entry is a login, whatever its fields are called.
            logins = as_object(read_json(self._folder / name))
            found += [ForeignSecret(name=login, place=name) for login in logins]
        try:
            return [*found, *(self._database.read(query_secrets) if self._database else ())]
        except (sqlite3.Error, OSError):
            return found


def _find_settings(folder: Path) -> Path:
    """Return the folder of the settings that belongs to a data folder."""
    if folder.parts[-3:-1] == (".local", "share"):
        return folder.parents[2] / ".config" / folder.name
    named = os.environ.get("XDG_DATA_HOME"), os.environ.get("XDG_CONFIG_HOME")
    if named[0] == str(folder.parent) and named[1]:
        return Path(named[1]) / folder.name
    # A copy: what is beside it belongs to it.
    return folder


def _make_conversation(
    session: OpenCodeSession, messages: Sequence[OpenCodeMessage], sources: dict[str, str]
) -> Iterator[ForeignConversation]:
    growing = is_recent(session.updated)
    items = read_items(session, messages, is_growing=growing)
    if items:
        yield ForeignConversation(
            id=session.id,
            items=items,
            created_at=min(session.created, *(item.at for item in items)),
            title=session.title,
            branch_of=session.parent or sources.get(session.id),
            is_growing=growing,
        )
