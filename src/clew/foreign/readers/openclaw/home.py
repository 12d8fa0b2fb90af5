"""Home of OpenClaw."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

from clew.core.payload import as_object, as_text
from clew.core.route import Route
from clew.foreign.conversations import ForeignConversation, ForeignProblem
from clew.foreign.folders import find_skills, list_secret_keys, read_json, read_memory
from clew.foreign.homes import ForeignPerson, ForeignSecret, PlainHome
from clew.foreign.item_list import ItemList
from clew.foreign.jsonl import JsonLine, is_recent, iter_lines, list_changed, parse_line, read_mtime
from clew.foreign.readers.openclaw.records import add_record
from clew.foreign.sqlite_files import ForeignDatabase, explain_error
from clew.foreign.trees import TreeNode, split_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from clew.foreign.homes import ForeignMemory, ForeignSkill, Found

_KINDS = {"direct": "dm", "group": "group", "channel": "group"}


def list_routes(key: str) -> list[Route]:
    """Return the chat of a session key, ``agent:ID:CHANNEL:direct:PEER[:thread:ID]``, if any."""
    parts = key.split(":")
    if len(parts) not in (5, 7) or parts[0] != "agent" or parts[3] not in _KINDS or not all(parts):
        return []
    thread = parts[6] if len(parts) == 7 else None
    return [Route(platform=parts[2], kind=_KINDS[parts[3]], chat=parts[4], thread=thread)]


def read_paths(
    session: str, key: str, lines: Sequence[JsonLine], *, at: int
) -> Iterator[ForeignConversation]:
    """Yield the main path of a session's records, then its branches."""
    nodes = [_make_node(line.data) for line in lines]
    for path in split_paths(nodes, lambda _old, _new: True):
        items = ItemList(at)
        for place in path.places:
            line = lines[place]
            if line.is_damaged:
                items.add_damaged(line)
            else:
                add_record(items, f"line-{line.number}", line.data)
        if items.items:
            yield ForeignConversation(
                id=f"{session}/{path.origin}" if path.origin else session,
                items=items.items,
                created_at=min(item.at for item in items.items),
                branch_of=session if path.origin else None,
                routes=[] if path.origin else list_routes(key),
                is_growing=is_recent(at),
            )


def _make_node(data: dict[str, Any]) -> TreeNode:
    if data.get("type") == "session":
        return TreeNode()
    parent = data.get("targetId") if data.get("type") == "leaf" else data.get("parentId")
    return TreeNode(id=as_text(data.get("id")), parent=as_text(parent) or None)


class OpenClawHome(PlainHome):
    """The folder of OpenClaw."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.description = f"OpenClaw, {folder}"

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        """Yield the sessions of each agent's database, then those of older releases."""
        for file in sorted(self._folder.glob("agents/*/agent/openclaw-agent.sqlite")):
            try:
                yield from self._read_store(file, since)
            except sqlite3.Error as error:
                yield ForeignProblem(place=str(file), reason=explain_error(error))
        for file in list_changed(self._folder.glob("agents/*/sessions/*.jsonl"), since):
            keys = as_object(read_json(file.parent / "sessions.json"))
            key = next(
                (k for k, v in keys.items() if as_object(v).get("sessionId") == file.stem), ""
            )
            try:
                yield from read_paths(file.stem, key, list(iter_lines(file)), at=read_mtime(file))
            except OSError as error:
                yield ForeignProblem(place=str(file), reason=str(error))

    def _read_store(self, file: Path, since: int) -> Iterator[Found]:
        store = ForeignDatabase(file)
        windows = store.read(
            lambda c: c.execute(
                """
                SELECT w.session_id, w.session_key, n.current_session_id,
                       max(w.updated_at, coalesce(w.transcript_updated_at, 0)) AS at
                FROM session_windows w LEFT JOIN session_nodes n ON n.session_key = w.session_key
                ORDER BY at, w.session_id
                """
            ).fetchall()
        )
        for row in windows:
            if row["at"] < since:
                continue
            name = row["session_id"]
            events = store.read(
                lambda c, name=name: c.execute(
                    "SELECT seq, event_json, event_zstd FROM transcript_events"
                    " WHERE session_id = ? ORDER BY seq",
                    (name,),
                ).fetchall()
            )
            lines = [parse_line(one["seq"], _unpack(one)) for one in events]
            key = row["session_key"] if row["current_session_id"] == name else ""
            yield from read_paths(name, key, lines, at=row["at"])

    def list_memory(self) -> Sequence[ForeignMemory]:
        space = self._folder / "workspace"
        daily = sorted(f"memory/{path.name}" for path in space.glob("memory/*.md"))
        return read_memory(space, "MEMORY.md", "USER.md", *daily)

    def list_skills(self) -> Sequence[ForeignSkill]:
        return [
            *find_skills(self._folder / "skills"),
            *find_skills(self._folder / "workspace/skills"),
        ]

    def list_people(self) -> Sequence[ForeignPerson]:
        file = self._folder / "state/openclaw.sqlite"
        try:
            rows = ForeignDatabase(file).read(
                lambda c: c.execute(
                    "SELECT DISTINCT channel_key, entry FROM channel_pairing_allow_entries"
                ).fetchall()
            )
        except (sqlite3.Error, OSError):
            return ()
        return [ForeignPerson(platform=row["channel_key"], id=row["entry"]) for row in rows]

    def list_secrets(self) -> Sequence[ForeignSecret]:
        found = list(list_secret_keys(read_json(self._folder / "openclaw.json"), "openclaw.json"))
        for file in sorted(self._folder.glob("agents/*/agent/auth-profiles.json")):
            found += list_secret_keys(read_json(file), str(file.relative_to(self._folder)))
        return found


def _unpack(row: sqlite3.Row) -> str:
    """Return an event as JSON; one that is compressed stays as it is, and is named."""
    if row["event_json"] is not None:
        return str(row["event_json"])
    return json.dumps({"type": "compressed", "zstd": bytes(row["event_zstd"] or b"").hex()})
