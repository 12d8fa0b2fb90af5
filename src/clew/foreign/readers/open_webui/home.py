"""The database of Open WebUI."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object, as_text
from clew.foreign.conversations import ForeignFile, ForeignProblem, ForeignSender
from clew.foreign.folders import list_secret_keys
from clew.foreign.homes import ForeignMemory, PlainHome
from clew.foreign.readers.open_webui.chats import StoredChat, list_conversations, read_stored
from clew.foreign.sqlite_files import ForeignDatabase, explain_error, list_columns
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from clew.foreign.homes import ForeignSecret, Found

#: Milliseconds since its last change in which a chat may still be written to.
_RECENT: Final = 600_000
#: Columns of the table of messages that the JSON calls otherwise.
_RENAMED: Final = {
    "parent_id": "parentId",
    "model_id": "model",
    "status_history": "statusHistory",
    "context_summary": "contextSummary",
    "created_at": "timestamp",
}
_JSON_COLUMNS: Final = ("content", "output", "files", "sources", "error", "usage")
_SECRET_TABLES: Final = ("key", "value"), ("id", "data")


class OpenWebUiHome(PlainHome):
    """A ``webui.db``, with its uploads beside it."""

    def __init__(self, path: Path) -> None:
        self._database = ForeignDatabase(path)
        self._uploads = path.parent / "uploads"
        self._people: dict[str, ForeignSender] = {}
        self.description = f"Open WebUI, {path}"

    def count_messages(self) -> int | None:
        return None

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        try:
            self._people = self._database.read(_read_people)
            names = self._database.read(_list_chats)
        except sqlite3.Error as error:
            yield ForeignProblem(place=self._database.path.name, reason=explain_error(error))
            return
        for name in names:
            yield from self._read_chat(name, since)

    def _read_chat(self, name: str, since: int) -> Iterator[Found]:
        try:
            row, more = self._database.read(lambda opened: _query_chat(opened, name))
        except sqlite3.Error as error:
            yield ForeignProblem(place=f"chat {name}", reason=explain_error(error))
            return
        chat = as_object(_parse(row.get("chat")))
        if row and not chat and not more:
            yield ForeignProblem(place=f"chat {name}", reason="its JSON is damaged")
        stored = read_stored(row, chat)
        if row and stored.updated_at >= since:
            yield from list_conversations(self._complete(stored, row, more), self)

    def _complete(
        self, stored: StoredChat, row: Mapping[str, Any], more: Mapping[str, Mapping[str, Any]]
    ) -> StoredChat:
        return replace(
            stored,
            more=more,
            sender=self._people.get(as_text(row.get("user_id"))),
            is_growing=stored.updated_at > time.time() * 1000 - _RECENT,
        )

    def fetch(self, name: str) -> ForeignFile | None:
        """Return an uploaded file by its id."""
        try:
            row = self._database.read(lambda opened: _query_file(opened, name)) if name else {}
        except sqlite3.Error:
            return None
        if not row:
            return None
        title = as_text(row.get("filename"))
        about = as_object(_parse(row.get("meta")))
        return ForeignFile(
            name=title or name,
            media_type=as_text(about.get("content_type")),
            content=self._read_upload(as_text(row.get("path")), name),
        )

    def _read_upload(self, path: str, name: str) -> bytes | None:
        """Return the content of a file; only of the folder of uploads, wherever it was."""
        short = path.replace("\\", "/").rpartition("/")[2]
        file = self._uploads / short
        if not short.startswith(name) or not file.is_file():
            return None
        return file.read_bytes()

    def list_memory(self) -> Sequence[ForeignMemory]:
        try:
            people = self._database.read(_read_people)
            rows = self._database.read(_query_memories)
        except sqlite3.Error:
            return ()
        texts: dict[str, list[str]] = {}
        for row in rows:
            texts.setdefault(as_text(row["user_id"]), []).append(as_text(row["content"]))
        return [
            ForeignMemory(name=f"memory of {_name(people.get(one), one)}", text=_make_list(facts))
            for one, facts in texts.items()
        ]

    def list_secrets(self) -> Sequence[ForeignSecret]:
        try:
            return self._database.read(_list_secrets)
        except sqlite3.Error:
            return ()


def _name(person: ForeignSender | None, default: str) -> str:
    return person.name if person is not None and person.name else default


def _make_list(facts: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(fact.split())}" for fact in facts if fact.strip())


def _parse(value: object) -> Any:
    if not isinstance(value, str | bytes):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _read_people(connection: sqlite3.Connection) -> dict[str, ForeignSender]:
    if not {"id", "name"} <= list_columns(connection, "user"):
        return {}
    rows = connection.execute('SELECT id, name FROM "user"')
    people = [ForeignSender(id=as_text(row["id"]), name=as_text(row["name"])) for row in rows]
    return {one.id: one for one in people}


def _list_chats(connection: sqlite3.Connection) -> list[str]:
    if "chat" not in list_columns(connection, "chat"):
        return []
    rows = connection.execute("SELECT id FROM chat ORDER BY created_at, id")
    return [row["id"] for row in rows]


def _query_chat(
    connection: sqlite3.Connection, name: str
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    row = connection.execute("SELECT * FROM chat WHERE id = ?", (name,)).fetchone()
    more: dict[str, dict[str, Any]] = {}
    if "chat_id" in list_columns(connection, "chat_message"):
        query = "SELECT * FROM chat_message WHERE chat_id = ? ORDER BY created_at, id"
        for one in connection.execute(query, (name,)):
            columns: dict[str, Any] = dict(one)
            told = {_RENAMED.get(key, key): value for key, value in columns.items()}
            told |= {key: _parse(told[key]) for key in _JSON_COLUMNS if key in told}
            more[as_text(told["id"]).removeprefix(f"{name}-")] = told
    return ({} if row is None else dict(row)), more


def _query_file(connection: sqlite3.Connection, name: str) -> dict[str, Any]:
    if not {"filename", "path"} <= list_columns(connection, "file"):
        return {}
    row = connection.execute('SELECT * FROM "file" WHERE id = ?', (name,)).fetchone()
    return {} if row is None else dict(row)


def _query_memories(connection: sqlite3.Connection) -> list[sqlite3.Row]:
    if "content" not in list_columns(connection, "memory"):
        return []
    return connection.execute("SELECT user_id, content FROM memory ORDER BY id").fetchall()


def _list_secrets(connection: sqlite3.Connection) -> list[ForeignSecret]:
    columns = list_columns(connection, "config")
    for key, value in _SECRET_TABLES:
        if {key, value} <= columns:
            rows = connection.execute(f"SELECT {key}, {value} FROM config")
            told = {as_text(row[key]): _parse(row[value]) for row in rows}
            if key == "id":
                told = {"": list(told.values())} if len(told) != 1 else next(iter(told.values()))
            return list(list_secret_keys(told, "webui.db, table config"))
    return []
