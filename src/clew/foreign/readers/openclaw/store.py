"""Databases of OpenClaw's agents: sessions, and their records, compressed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object, as_text
from clew.foreign.conversations import ForeignProblem
from clew.foreign.jsonl import JsonLine, parse_line
from clew.foreign.readers.openclaw.compression import decompress
from clew.foreign.sqlite_files import ForeignDatabase, list_columns
from clew.record import Record

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

#: Why a session took the place of another one that goes on in it.
_CONTINUED: Final = ("fork", "rewind", "rollover", "compaction")


class StoredSession(Record):
    """A session with its records."""

    id: str
    #: Of its chat; empty if another session is in its place now.
    key: str
    at: int
    #: The session that it goes on from.
    source: str | None
    lines: Sequence[JsonLine]


class SessionStore:
    """The database of one agent."""

    def __init__(self, file: Path) -> None:
        self._file, self._database = file, ForeignDatabase(file)

    def iter_sessions(self, since: int) -> Iterator[StoredSession | ForeignProblem]:
        """
        Yield the sessions, the oldest change first.

        :raises sqlite3.Error: if the database is locked or damaged
        """
        for session in self._database.read(_query_sessions):
            if session.at < since:
                continue
            try:
                lines = self._database.read(lambda c, name=session.id: self._read_lines(c, name))
            except (LookupError, OSError) as error:
                yield ForeignProblem(place=f"{self._file}, session {session.id}", reason=str(error))
            else:
                yield StoredSession(
                    id=session.id,
                    key=session.key,
                    at=session.at,
                    source=session.source,
                    lines=lines,
                )

    def _read_lines(self, connection: sqlite3.Connection, name: str) -> list[JsonLine]:
        columns = list_columns(connection, "transcript_events")
        packed = "event_zstd" if "event_zstd" in columns else "NULL"
        rows = connection.execute(
            f"SELECT seq, event_json, {packed} AS packed FROM transcript_events"
            " WHERE session_id = ? ORDER BY seq",
            (name,),
        ).fetchall()
        lines = [parse_line(row["seq"], _unpack(row)) for row in rows]
        return lines or [*self._read_cold(connection, name), *_read_reset(connection, name)]

    def _read_cold(self, connection: sqlite3.Connection, name: str) -> Iterator[JsonLine]:
        """Yield the records of a session that was not used for long."""
        if "archive_name" not in list_columns(connection, "session_transcript_cold_archives"):
            return
        query = "SELECT * FROM session_transcript_cold_archives WHERE session_id = ?"
        row = connection.execute(query, (name,)).fetchone()
        if row is None:
            return
        folder = self._file.parents[1] / "sessions" / "cold"
        packed = row["archive_blob"] or (folder / row["archive_name"]).read_bytes()
        for number, text in enumerate(decompress(packed).splitlines(), 1):
            line = parse_line(number, text)
            event = as_object(line.data.get("row"))
            if line.is_damaged:
                yield line
            elif line.data.get("kind") == "event":
                yield parse_line(int(event.get("seq") or number), as_text(event.get("event_json")))


def _read_reset(connection: sqlite3.Connection, name: str) -> list[JsonLine]:
    """Return the records of a session that was reset, which are kept in an archive."""
    if "archive_blob" not in list_columns(connection, "session_transcript_archives"):
        return []
    query = (
        "SELECT * FROM session_transcript_archives WHERE session_id = ? AND reason = 'reset'"
        " ORDER BY created_at DESC LIMIT 1"
    )
    row = connection.execute(query, (name,)).fetchone()
    if row is None:
        return []
    blob = bytes(row["archive_blob"])
    text = decompress(blob) if row["encoding"] == "zstd" else blob.decode("utf-8", "replace")
    return [parse_line(number, line) for number, line in enumerate(text.splitlines(), 1)]


def _unpack(row: sqlite3.Row) -> str:
    """Return an event as JSON; a damaged one that is compressed as what it is."""
    if row["event_json"] is not None:
        return as_text(row["event_json"])
    packed = bytes(row["packed"] or b"")
    try:
        return decompress(packed)
    except ValueError:
        return f"zstd {packed.hex()}"


def _query_sessions(connection: sqlite3.Connection) -> list[StoredSession]:
    nodes = {row["session_key"]: dict(row) for row in _select(connection, "session_nodes")}
    windows = [dict(row) for row in _select(connection, "session_windows")]
    found = [_describe(window, nodes) for window in windows]
    known = {one.id for one in found}
    found += [
        StoredSession(id=row["session_id"], key="", at=row["created_at"], source=None, lines=())
        for row in _select(connection, "session_transcript_archives")
        if row["reason"] == "reset" and row["session_id"] not in known
    ]
    return sorted(found, key=lambda one: (one.at, one.id))


def _select(connection: sqlite3.Connection, table: str) -> Sequence[sqlite3.Row]:
    if not list_columns(connection, table):
        return ()
    return connection.execute(f"SELECT * FROM {table}").fetchall()


def _describe(window: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> StoredSession:
    name, key = window["session_id"], as_text(window["session_key"])
    node = nodes.get(key, {})
    changed = (window.get("updated_at"), window.get("transcript_updated_at"))
    return StoredSession(
        id=name,
        key=key if node.get("current_session_id") == name else "",
        at=max(int(at or 0) for at in changed),
        source=_find_source(window, node, nodes),
        lines=(),
    )


def _find_source(
    window: Mapping[str, Any], node: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """Return the session that one was forked from, continues, or was started by."""
    before = as_text(window.get("previous_session_id"))
    if before:
        return before if window.get("reason") in _CONTINUED else None
    forked = as_text(node.get("fork_source_session_id"))
    told = [one.get(key) for one in (window, node) for key in ("parent_session_key", "spawned_by")]
    parents = [as_text(key) for key in told]
    started = [nodes[key].get("current_session_id") for key in parents if key in nodes]
    source = forked or next(map(as_text, started), "")
    return source if source and source != window["session_id"] else None
