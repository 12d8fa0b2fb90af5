"""Database of OpenCode."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object, as_text
from clew.foreign.homes import ForeignSecret
from clew.foreign.readers.opencode.records import OpenCodeMessage, StoredPart, make_session
from clew.foreign.sqlite_files import list_columns

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from clew.foreign.readers.opencode.records import OpenCodeSession

#: Tables with secrets, and the column that names them.
_SECRETS: Final = {"account": "email", "control_account": "email", "credential": "label"}
_PLACE: Final = "opencode.db, table"


def query_sessions(connection: sqlite3.Connection) -> tuple[list[OpenCodeSession], dict[str, int]]:
    """Return all sessions, the oldest change first, and when the first message of each was."""
    if "id" not in list_columns(connection, "session"):
        return [], {}
    rows = connection.execute("SELECT * FROM session ORDER BY time_updated, id").fetchall()
    first = connection.execute("SELECT session_id, min(time_created) FROM message GROUP BY 1")
    return [_read_session(dict(row)) for row in rows], dict(map(tuple, first))


def _read_session(row: dict[str, Any]) -> OpenCodeSession:
    told = {
        "id": row["id"],
        "parent": row.get("parent_id"),
        "title": row.get("title"),
        "created": row.get("time_created"),
        "updated": row.get("time_updated"),
    }
    return make_session(told, parse(row.get("revert")), 0)


def parse(value: object) -> dict[str, Any]:
    """Return the object that a JSON text holds; empty if it holds none."""
    try:
        return as_object(json.loads(as_text(value)))
    except (ValueError, RecursionError):
        return {}


def query_messages(connection: sqlite3.Connection, session: str) -> list[OpenCodeMessage]:
    """Return the messages of a session, with their parts."""
    parts: dict[str, list[StoredPart]] = {}
    query = "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id"
    for row in connection.execute(query, (session,)):
        data = parse(row["data"])
        part = StoredPart(id=row["id"], data=data, raw="" if data else as_text(row["data"]))
        parts.setdefault(row["message_id"], []).append(part)
    query = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id"
    rows = connection.execute(query, (session,)).fetchall()
    found = [_read_message(row, parts.pop(row["id"], [])) for row in rows]
    # Parts of messages that are gone.
    lost = [
        OpenCodeMessage(id=name, at=found[-1].at if found else 0, data={}, parts=some)
        for name, some in parts.items()
    ]
    return [*found, *lost] or _query_newer(connection, session)


def _read_message(row: sqlite3.Row, parts: Sequence[StoredPart]) -> OpenCodeMessage:
    data = parse(row["data"])
    raw = "" if data else as_text(row["data"])
    return OpenCodeMessage(id=row["id"], at=row["time_created"], data=data, parts=parts, raw=raw)


def _query_newer(connection: sqlite3.Connection, session: str) -> list[OpenCodeMessage]:
    """Return the records of the store that is to replace the other two tables: kept as events."""
    if "type" not in list_columns(connection, "session_message"):
        return []
    query = "SELECT * FROM session_message WHERE session_id = ? ORDER BY seq"
    return [
        OpenCodeMessage(
            id=row["id"],
            at=row["time_created"],
            data={**parse(row["data"]), "role": f"newer:{row['type']}"},
            parts=(),
        )
        for row in connection.execute(query, (session,))
    ]


def query_secrets(connection: sqlite3.Connection) -> list[ForeignSecret]:
    """Return the names of the accounts and keys that are kept in the database."""
    found: list[ForeignSecret] = []
    for table, column in _SECRETS.items():
        if column in list_columns(connection, table):
            rows = connection.execute(f"SELECT {column} AS name FROM {table}")
            found += [ForeignSecret(name=row["name"], place=f"{_PLACE} {table}") for row in rows]
    return found
