"""One home of Hermes Agent."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_text
from clew.foreign.chat_messages import read_moment
from clew.foreign.conversations import (
    ForeignConversation,
    ForeignEvent,
    ForeignProblem,
    ForeignSender,
)
from clew.foreign.folders import find_skills, read_memory
from clew.foreign.homes import PlainHome
from clew.foreign.readers.hermes import extras, routing, transcripts
from clew.foreign.readers.hermes.compactions import merge_copies
from clew.foreign.readers.hermes.joining import join_transcript
from clew.foreign.readers.hermes.rows import RowContext, StoredMessage, read_row
from clew.foreign.readers.hermes.sessions import (
    HermesSession,
    chain_sessions,
    find_origin,
    read_sessions,
)
from clew.foreign.sqlite_files import ForeignDatabase, explain_error, iter_rows, list_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from clew.core.route import Route
    from clew.foreign.homes import (
        ForeignJob,
        ForeignMemory,
        ForeignPerson,
        ForeignSecret,
        ForeignSetting,
        ForeignSkill,
        Found,
    )

#: Milliseconds since its last message in which a conversation may still be written to.
_RECENT: Final = 600_000


class HermesHome(PlainHome):
    """A folder with ``state.db``, transcripts, or both."""

    def __init__(self, folder: Path, database: Path) -> None:
        self._folder = folder
        self._database = ForeignDatabase(database) if _is_filled(database) else None
        self.description = f"Hermes Agent, {self._describe()}, {folder}"

    def _describe(self) -> str:
        if self._database is None:
            return "transcripts of a release without a database"
        try:
            return f"{self._database.path.name} of schema {self._database.read(_read_version)}"
        except sqlite3.Error as error:
            return f"{self._database.path.name} ({explain_error(error)})"

    def count_messages(self) -> int | None:
        if self._database is None:
            return None
        try:
            return self._database.read(_count_rows)
        except sqlite3.Error:
            return None

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        yield from self._list_profiles()
        try:
            sessions, entries = self._read_index()
        except sqlite3.Error as error:
            yield ForeignProblem(place="state.db", reason=explain_error(error))
            sessions, entries = list[HermesSession](), dict[str, dict[str, Any]]()
        files = transcripts.list_transcripts(self._folder / "sessions")
        sessions += _list_file_sessions(files, {one.id for one in sessions})
        reader = _Reader(self._database, sessions, files, routing.group_routes(entries))
        for chain in chain_sessions(sessions):
            if max(one.last_at for one in chain) >= since:
                yield from reader.read_chain(chain)

    def _list_profiles(self) -> Iterator[ForeignProblem]:
        for file in sorted(self._folder.glob("profiles/*/state.db")):
            name = file.parent.relative_to(self._folder).as_posix()
            reason = f"it is a home of its own: run clew import hermes {file.parent}"
            yield ForeignProblem(place=name, reason=reason)

    def _read_index(self) -> tuple[list[HermesSession], Mapping[str, Mapping[str, Any]]]:
        file = routing.read_file(self._folder / "sessions" / "sessions.json")
        if self._database is None:
            return [], file
        sessions, table = self._database.read(
            lambda connection: (read_sessions(connection), routing.read_table(connection))
        )
        return sessions, {**file, **table}

    def list_memory(self) -> Sequence[ForeignMemory]:
        return read_memory(self._folder / "memories", "MEMORY.md", "USER.md")

    def list_skills(self) -> Sequence[ForeignSkill]:
        return find_skills(self._folder / "skills")

    def list_jobs(self) -> Sequence[ForeignJob | ForeignProblem]:
        return list(extras.list_jobs(self._folder / "cron" / "jobs.json"))

    def list_people(self) -> Sequence[ForeignPerson]:
        return list(extras.list_people(self._folder))

    def list_settings(self) -> Sequence[ForeignSetting]:
        return list(extras.list_settings(self._folder / "config.yaml"))

    def list_secrets(self) -> Sequence[ForeignSecret]:
        return list(extras.list_secrets(self._folder))


def _is_filled(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _read_version(connection: sqlite3.Connection) -> str:
    if not list_columns(connection, "schema_version"):
        return "(unknown)"
    row = connection.execute("SELECT MAX(version) AS version FROM schema_version").fetchone()
    return as_text(row["version"]) or "(unknown)"


def _count_rows(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0])


def _list_file_sessions(files: Mapping[str, Path], known: set[str]) -> list[HermesSession]:
    return [
        HermesSession(
            id=name,
            started_at=transcripts.read_created(file),
            last_at=int(file.stat().st_mtime * 1000),
        )
        for name, file in files.items()
        if name not in known
    ]


class _Reader:
    """Reader of the conversations of a home."""

    def __init__(
        self,
        database: ForeignDatabase | None,
        sessions: Sequence[HermesSession],
        files: Mapping[str, Path],
        routes: Mapping[str, Sequence[Route]],
    ) -> None:
        self._database, self._files, self._routes = database, files, routes
        self._sessions = {one.id: one for one in sessions}
        self._roots = {one.id: chain[0].id for chain in chain_sessions(sessions) for one in chain}

    def read_chain(self, chain: Sequence[HermesSession]) -> Iterator[Found]:
        """Yield a conversation, unless it is empty."""
        try:
            stored = self._read_stored(chain)
        except (sqlite3.Error, OSError) as error:
            reason = explain_error(error) if isinstance(error, sqlite3.Error) else str(error)
            yield ForeignProblem(place=f"session {chain[0].id}", reason=reason)
            return
        if not stored:
            return
        first, last = chain[0], max(one.last_at for one in chain)
        yield ForeignConversation(
            id=first.id,
            title=next((one.title for one in chain if one.title), ""),
            created_at=min(filter(None, (first.started_at, *_list_times(stored))), default=0),
            items=merge_copies(stored),
            branch_of=find_origin(chain, self._roots, self._sessions),
            routes=[route for one in chain for route in self._routes.get(one.id, ())],
            is_growing=last > time.time() * 1000 - _RECENT,
        )

    def _read_stored(self, chain: Sequence[HermesSession]) -> list[StoredMessage]:
        stored: list[StoredMessage] = []
        prompts: set[str] = set()
        for session in chain:
            context = _make_context(session)
            rows = self._read_rows(session, context)
            file = self._files.get(session.id)
            if file is not None:
                rows = join_transcript(rows, list(transcripts.read_transcript(file, context)))
            for one in rows:
                text = one.item.payload if isinstance(one.item, ForeignEvent) else ""
                if one.item.id.endswith(":prompt") and text in prompts:
                    continue
                prompts.add(text)
                stored.append(one)
        return stored

    def _read_rows(self, session: HermesSession, context: RowContext) -> list[StoredMessage]:
        if self._database is None:
            return []
        return self._database.read(lambda connection: _query_rows(connection, session, context))


def _list_times(stored: Sequence[StoredMessage]) -> list[int]:
    return [one.item.at for one in stored if one.key]


def _make_context(session: HermesSession) -> RowContext:
    is_direct = session.user and session.chat_type in ("dm", "")
    sender = ForeignSender(id=session.user, name=session.user_name) if is_direct else None
    return RowContext(
        session=session.id, model=session.model, sender=sender, created_at=session.started_at
    )


def _query_rows(
    connection: sqlite3.Connection, session: HermesSession, context: RowContext
) -> list[StoredMessage]:
    stored = _read_prompt(connection, context)
    if not list_columns(connection, "messages"):
        return stored
    at = session.started_at
    cursor = connection.execute(
        "SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session.id,)
    )
    names = [column[0] for column in cursor.description]
    for row in iter_rows(cursor):
        if isinstance(row, sqlite3.Error):
            stored.append(_make_damage(row, context, at))
            break
        told = zip(names, row, strict=True)
        values = {name: value for name, value in told if value is not None}
        one = read_row(values, context, name=str(values["id"]), at=at)
        at = read_moment(one.item.at, at)
        stored.append(one)
    return stored


def _read_prompt(connection: sqlite3.Connection, context: RowContext) -> list[StoredMessage]:
    if "system_prompt" not in list_columns(connection, "sessions"):
        return []
    query = "SELECT system_prompt FROM sessions WHERE id = ?"
    row = connection.execute(query, (context.session,)).fetchone()
    prompt = "" if row is None else as_text(row["system_prompt"])
    if not prompt:
        return []
    return [_make_event(context, "prompt", "system", "The system prompt", json.dumps(prompt))]


def _make_damage(error: sqlite3.Error, context: RowContext, at: int) -> StoredMessage:
    text = f"What follows cannot be read: {explain_error(error)}"
    return _make_event(context, "damage", "damaged", text, json.dumps(str(error)), at=at)


def _make_event(
    context: RowContext, name: str, kind: str, text: str, payload: str, *, at: int = 0
) -> StoredMessage:
    event = ForeignEvent(
        id=f"{context.session}:{name}",
        at=at or context.created_at,
        kind=kind,
        text=text,
        payload=payload,
    )
    return StoredMessage(item=event, key=(), session=context.session)
