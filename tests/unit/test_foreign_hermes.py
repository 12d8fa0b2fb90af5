"""What Hermes Agent stored is read whole: its database, and the transcripts before it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from clew.core.entry import Role
from clew.errors import UsageError
from clew.foreign.conversations import (
    ForeignCompaction,
    ForeignConversation,
    ForeignEvent,
    ForeignMessage,
    ForeignProblem,
)
from clew.foreign.readers import hermes
from clew.foreign.sqlite_files import ForeignDatabase
from tests.foreign.folders import check_conversation, conversations, copy_sample, list_tree

if TYPE_CHECKING:
    from pathlib import Path

    from clew.foreign.conversations import ForeignItem


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_sample("hermes", tmp_path)


def count_stored(items: list[ForeignItem]) -> int:
    """Count the stored messages that items stand for."""
    count = 0
    for item in items:
        if isinstance(item, ForeignEvent) and item.kind == "copies":
            count += len(json.loads(item.payload))
        elif not item.id.endswith(":prompt"):
            count += 1
    return count


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "state.db")) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


def read_one(folder: Path, name: str) -> ForeignConversation:
    found = hermes.open_home(folder).iter_conversations()
    return next(one for one in found if isinstance(one, ForeignConversation) and one.id == name)


def test_every_stored_message_is_there_once(folder: Path) -> None:
    home = hermes.open_home(folder)
    found = conversations(home)
    with closing(sqlite3.connect(folder / "state.db")) as database:
        rows = database.execute("SELECT COUNT(*) FROM messages").fetchone()[0]
    lines = sum(len(file.read_text().splitlines()) for file in folder.glob("sessions/*.jsonl"))
    assert home.count_messages() == rows
    assert sum(count_stored(list(one.items)) for one in found) == rows + lines
    for one in found:
        check_conversation(one)


def test_a_chain_of_compactions_is_one_conversation(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "state.db")) as database:
        ended = "SELECT COUNT(*) FROM sessions WHERE end_reason = 'compression'"
        rotations = database.execute(ended).fetchone()[0]
        sessions = database.execute("SELECT COUNT(*) FROM sessions").fetchone()[0]
        in_place = database.execute(
            "SELECT COUNT(*) FROM messages WHERE content LIKE '%[CONTEXT COMPACTION%' "
            "AND session_id IN (SELECT session_id FROM messages WHERE compacted)"
        ).fetchone()[0]
    found = [one for one in conversations(hermes.open_home(folder)) if "_" in one.id]
    compactions = [
        item for one in found for item in one.items if isinstance(item, ForeignCompaction)
    ]
    files = len(list(folder.glob("sessions/*.jsonl")))
    assert rotations
    assert in_place
    assert len(compactions) == rotations + in_place
    assert len(found) == sessions - rotations + files
    assert all(one.summary.startswith("## Goal\nSum up") for one in compactions)
    assert all(one.kept_from for one in compactions)


def test_questions_and_answers_occur_once_in_spite_of_the_copies(folder: Path) -> None:
    for one in conversations(hermes.open_home(folder)):
        texts = [
            item.text
            for item in one.items
            if isinstance(item, ForeignMessage) and item.role is Role.USER
        ]
        assert len(set(texts)) == len(texts)


def test_branches_point_to_their_origin_and_chats_to_their_conversation(folder: Path) -> None:
    found = {one.id: one for one in conversations(hermes.open_home(folder))}
    branches = [one for one in found.values() if one.branch_of]
    assert [one.id for one in branches] == ["20260105_000005_abc005_b", "20260105_000015_abc015_b"]
    assert all(one.branch_of in found for one in branches)
    keys = {route.key for one in found.values() for route in one.routes}
    assert "agent:main:telegram:dm:1007" in keys
    assert "agent:main:telegram:group:-1008:thread:7" in keys
    assert "agent:main:discord:group:-10018:user:1018" in keys
    assert "agent:main:slack:group:C1:user:U1" in keys


def test_what_was_taken_back_is_kept_beside(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "state.db")) as database:
        query = "SELECT COUNT(*) FROM messages WHERE active = 0 AND compacted = 0"
        rewound = database.execute(query).fetchone()[0]
    items = [item for one in conversations(hermes.open_home(folder)) for item in one.items]
    events = [one for one in items if isinstance(one, ForeignEvent) and one.kind == "rewound"]
    assert len(events) == rewound > 0


def test_reading_again_gives_the_same_and_leaves_no_trace(folder: Path) -> None:
    before = list_tree(folder)
    first = conversations(hermes.open_home(folder))
    assert conversations(hermes.open_home(folder)) == first
    assert list_tree(folder) == before
    last = max(item.at for item in first[-1].items)
    assert len(conversations(hermes.open_home(folder), since=last)) < len(first)


def test_a_database_that_is_written_to_is_read_without_a_trace(folder: Path) -> None:
    change(folder, "PRAGMA journal_mode = WAL")
    before = list_tree(folder)
    count = len(conversations(hermes.open_home(folder)))
    assert list_tree(folder) == before
    with closing(sqlite3.connect(folder / "state.db")) as writer:
        writer.execute("INSERT INTO sessions (id, source, started_at) VALUES ('new', 'cli', 1)")
        writer.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) "
            "VALUES ('new', 'user', 'hi', 1767600000)"
        )
        writer.commit()
        writer.execute("UPDATE messages SET content = 'not yet' WHERE session_id = 'new'")
        names = list_tree(folder).keys()
        assert len(conversations(hermes.open_home(folder))) == count + 1
        assert list_tree(folder).keys() == names
        new = read_one(folder, "new").items[0]
        assert isinstance(new, ForeignMessage)
        assert new.text == "hi"


def test_a_wal_that_a_crash_left_is_read_from_a_copy(folder: Path, tmp_path: Path) -> None:
    change(folder, "PRAGMA journal_mode = WAL")
    left = tmp_path / "left.db"
    with closing(sqlite3.connect(folder / "state.db")) as writer:
        writer.execute("UPDATE sessions SET title = 'of the WAL'")
        writer.commit()
        for suffix in ("", "-wal"):
            source = folder / f"state.db{suffix}"
            left.with_name(f"left.db{suffix}").write_bytes(source.read_bytes())
    database = ForeignDatabase(left)
    query = "SELECT DISTINCT title FROM sessions"
    titles = database.read(lambda opened: [row[0] for row in opened.execute(query)])
    assert titles == ["of the WAL"]
    assert {one.name for one in tmp_path.glob("left*")} == {"left.db", "left.db-wal"}


def test_damaged_rows_become_events_with_what_is_stored(folder: Path) -> None:
    name = "20260105_000001_abc001"
    change(
        folder,
        f"UPDATE messages SET tool_calls = '[{{\"id\": \"ca' WHERE session_id = '{name}' "
        "AND tool_calls IS NOT NULL",
        "INSERT INTO messages (session_id, role, content, timestamp) "
        f"VALUES ('{name}', 'oracle', CAST(x'68ff00' AS TEXT), '2026-01-05T09:00:00')",
        "INSERT INTO messages (session_id, role, content, timestamp) "
        f"VALUES ('{name}', 'user', x'00ff', 1767600000123)",
    )
    items = read_one(folder, name).items
    kinds = [item.kind for item in items if isinstance(item, ForeignEvent)]
    assert "damaged" in kinds
    assert "unknown" in kinds
    assert items[-2].at == 1767603600000
    assert items[-1].at == 1767600000123
    assert isinstance(items[-1], ForeignMessage)
    assert items[-1].text == "\0\N{REPLACEMENT CHARACTER}"


def test_an_older_schema_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state.db")) as database:
        database.execute("CREATE TABLE sessions (id TEXT, source TEXT, started_at REAL)")
        database.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, "
            "content TEXT, timestamp REAL)"
        )
        database.execute("INSERT INTO messages VALUES (1, 'orphan', 'user', 'hello', 1767600000)")
        database.commit()
    found = conversations(hermes.open_home(tmp_path))
    assert [(one.id, len(one.items)) for one in found] == [("orphan", 1)]


def test_lines_that_are_damaged_become_events(folder: Path) -> None:
    file = next(folder.glob("sessions/*.jsonl"))
    with file.open("ab") as out:
        out.write(b'\xff\x00\n{"role": "user", "content": "\\ud800 ok"}\n{"role": "assis')
    items = read_one(folder, file.stem).items
    kinds = [item.kind if isinstance(item, ForeignEvent) else "message" for item in items[-3:]]
    assert kinds == ["damaged", "message", "damaged"]


def test_a_damaged_database_is_a_problem_and_no_crash(folder: Path) -> None:
    database = folder / "state.db"
    content = bytearray(database.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    database.write_bytes(content)
    found = list(hermes.open_home(folder).iter_conversations())
    problems = [one for one in found if isinstance(one, ForeignProblem)]
    assert problems
    assert "damaged" in problems[0].reason
    database.write_bytes(b"no database at all")
    with pytest.raises(UsageError, match="backup"):
        hermes.open_home(folder)
    with pytest.raises(UsageError, match=r"state\.db"):
        hermes.open_home(folder / "memories")


def test_the_rest_of_a_home_is_listed(folder: Path) -> None:
    home = hermes.open_home(folder)
    assert [one.name for one in home.list_memory()] == ["MEMORY.md", "USER.md"]
    assert [one.name for one in home.list_skills()] == ["pruning"]
    jobs = [one for one in home.list_jobs() if not isinstance(one, ForeignProblem)]
    assert [one.schedule for one in jobs] == ["0 7 * * *", "every 7200"]
    assert jobs[0].route is not None
    assert jobs[0].route.key == "agent:main:telegram:dm:42"
    assert [(one.id, one.name) for one in home.list_people()] == [("42", "Ada"), ("43", "")]
    assert {one.name for one in home.list_settings()} == {
        "model.name", "schedule.timezone", "compaction.threshold"
    }  # fmt: skip
    assert [one.name for one in home.list_secrets()] == ["OPENROUTER_API_KEY"]
    assert "sk-none" not in repr(home.list_secrets())


def test_a_profile_is_named_since_it_is_a_home_of_its_own(folder: Path) -> None:
    profile = folder / "profiles" / "work"
    profile.mkdir(parents=True)
    (profile / "state.db").write_bytes((folder / "state.db").read_bytes())
    found = list(hermes.open_home(folder).iter_conversations())
    assert isinstance(found[0], ForeignProblem)
    assert found[0].place == "profiles/work"
    assert conversations(hermes.open_home(profile))


def test_what_only_the_database_or_only_the_file_has_is_there(folder: Path) -> None:
    """After a crash a file has the turn that the database lacks, which went on without it."""
    name = "20260105_000000_abc000"
    before = [item for item in read_one(folder, name).items if isinstance(item, ForeignMessage)]
    lost = [{"role": "user", "content": "lost"}, {"role": "assistant", "content": "half"}]
    first = {"role": "user", "content": before[0].text}
    (folder / "sessions" / f"session_{name}.json").write_text(
        json.dumps({"messages": [{"role": "user", "content": "earlier"}, first, *lost]})
    )
    after = [item for item in read_one(folder, name).items if isinstance(item, ForeignMessage)]
    assert [item.text for item in after] == [
        "earlier", before[0].text, "lost", "half", *(item.text for item in before[1:]),
    ]  # fmt: skip
