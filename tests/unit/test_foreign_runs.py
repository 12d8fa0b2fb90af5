"""What the agents of Hermes and nanobot wrote themselves is there once, and in order."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

from clew.core.entry import Role
from clew.foreign.conversations import ForeignCompaction, ForeignConversation, ForeignMessage
from clew.foreign.readers import hermes, nanobot
from tests.foreign.folders import check_conversation, conversations, copy_sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: A text, or a call or result with its id.
Piece = tuple[str, str]


def list_pieces(one: ForeignConversation) -> Iterator[Piece]:
    """Yield what a conversation holds, in order."""
    for item in one.items:
        if isinstance(item, ForeignMessage):
            if item.text:
                yield item.role.value, item.text
            yield from (("call", call.id) for call in item.calls)
            yield from (("result", f"{one.call_id} {one.text}") for one in item.results)


def list_stored(record: Mapping[str, Any]) -> Iterator[Piece]:
    """Yield what a message in the form of an API holds."""
    if record["role"] == "tool":
        yield "result", f"{record['tool_call_id']} {record['content']}"
        return
    if record.get("content"):
        yield record["role"], record["content"]
    yield from (("call", call["id"]) for call in record.get("tool_calls") or ())


def read_nanobot(folder: Path) -> Iterator[tuple[str, list[Piece]]]:
    """Yield the key of each session, and its messages as the files have them."""
    for file in folder.rglob("*.jsonl"):
        head, *rows = [json.loads(line) for line in file.read_text().splitlines()]
        beside = file.with_suffix(".checkpoint.json")
        if beside.exists():
            left = json.loads(beside.read_text())["checkpoint"]
            rows += [left["assistant_message"], *left["completed_tool_results"]]
        shown = [
            one
            for one in rows
            if not (one.get("_type") or one.get("_hidden_history") or one.get("_command"))
        ]
        yield head["key"], [piece for one in shown for piece in list_stored(one)]


def test_every_session_of_nanobot_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = copy_sample("nanobot.runs", tmp_path)
    found = {one.id: one for one in conversations(nanobot.open_home(folder))}
    written = dict(read_nanobot(folder))
    assert {name: list(list_pieces(one)) for name, one in found.items()} == written
    assert len(written) == 8
    summaries = [
        item for one in found.values() for item in one.items if isinstance(item, ForeignCompaction)
    ]
    assert len(summaries) == 2
    *_, killed = list_pieces(found["telegram:-1001013:topic:7"])
    assert killed[0] == "result", "killed in the middle of the answer to it"
    for one in found.values():
        check_conversation(one)


def read_hermes(folder: Path) -> Counter[Piece]:
    """Count the questions, calls and results of the database; copies have the same ones."""
    query = "SELECT role, content, tool_calls, tool_call_id FROM messages WHERE active OR compacted"
    found: set[Piece] = set()
    with closing(sqlite3.connect(folder / "state.db")) as database:
        for role, content, calls, call_id in database.execute(query):
            if role == "user" and not content.startswith("[CONTEXT COMPACTION"):
                found.add(("user", content))
            if role == "tool":
                found.add(("result", f"{call_id} {content}"))
            found |= {("call", call["id"]) for call in json.loads(calls or "[]")}
    return Counter(found)


def test_every_message_of_hermes_is_read_once_in_spite_of_its_copies(tmp_path: Path) -> None:
    folder = copy_sample("hermes.runs", tmp_path)
    found = conversations(hermes.open_home(folder))
    branches = {one.branch_of for one in found if one.branch_of}
    originals = [one for one in found if one.branch_of is None]
    pieces = Counter(piece for one in originals for piece in list_pieces(one))
    answers = {piece for piece in pieces if piece[0] == Role.ASSISTANT.value}
    for piece in answers:
        del pieces[piece]
    branch = [one for one in found if one.branch_of]
    new = {piece for one in branch for piece in list_pieces(one)} - answers
    stored = read_hermes(folder)
    assert pieces == Counter({piece: 1 for piece in stored if piece in pieces})
    assert stored.keys() <= pieces.keys() | new
    assert branches <= {one.id for one in found}
    for one in found:
        check_conversation(one)


def test_the_summaries_of_hermes_stand_where_they_were_made(tmp_path: Path) -> None:
    folder = copy_sample("hermes.runs", tmp_path)
    found = conversations(hermes.open_home(folder))
    with closing(sqlite3.connect(folder / "state.db")) as database:
        query = "SELECT COUNT(*) FROM messages WHERE content LIKE '%[CONTEXT COMPACTION%'"
        (stored,) = database.execute(query).fetchone()
    summaries = [item for one in found for item in one.items if isinstance(item, ForeignCompaction)]
    assert len(summaries) == stored > 2
    assert all(one.kept_from for one in summaries)
    assert all("A short title or summary" in one.summary for one in summaries)
