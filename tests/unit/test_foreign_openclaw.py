"""Sessions of OpenClaw are read whole, from both of its stores."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import zstandard

from clew.core.entry import Role
from clew.foreign.conversations import (
    ForeignCompaction,
    ForeignEvent,
    ForeignMessage,
    ForeignProblem,
)
from clew.foreign.homes import ForeignJob
from clew.foreign.readers.openclaw import find_home, open_home
from tests.foreign.folders import check_conversation, conversations, copy_sample, list_tree

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    import pytest

    from clew.foreign.conversations import ForeignConversation, ForeignItem


#: A session that release 2026.4.24 has written, beside a trace of its runs.
OLDER = "48ffa35a-8a2d-446c-9002-1006f553b628"


def test_every_event_of_the_database_is_a_part_of_its_conversation(tmp_path: Path) -> None:
    folder = copy_sample("openclaw", tmp_path)
    before = list_tree(folder)
    found = conversations(open_home(folder))
    assert list_tree(folder) == before
    file = folder / "agents/main/agent/openclaw-agent.sqlite"
    with closing(sqlite3.connect(file)) as database:
        events = database.execute("SELECT session_id, event_json FROM transcript_events").fetchall()
        keys = dict(database.execute("SELECT session_id, session_key FROM session_windows"))
    assert {one.id for one in found} == {*keys, OLDER}
    for one in found:
        check_conversation(one)
        if one.id == OLDER:
            continue
        told = [json.loads(text) for session, text in events if session == one.id]
        messages = [item for item in one.items if isinstance(item, ForeignMessage)]
        assert len(one.items) == len(told)
        assert len(messages) == sum(event["type"] == "message" for event in told)
        assert [route.chat for route in one.routes] == _list_chats(keys[one.id])


def test_a_file_of_an_older_release_is_read_and_the_trace_beside_it_is_not(
    tmp_path: Path,
) -> None:
    folder = copy_sample("openclaw", tmp_path)
    shutil.rmtree(folder / "agents/main/agent")
    (found,) = conversations(open_home(folder))
    (file,) = folder.rglob(f"{OLDER}.jsonl")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(found.items) == len(lines)
    assert len(_said(found)) == sum(line["type"] == "message" for line in lines)


def _list_chats(key: str) -> list[str]:
    parts = key.split(":")
    return [parts[4]] if len(parts) > 4 else []


def test_the_older_files_are_read_with_branches_compactions_and_damage(tmp_path: Path) -> None:
    folder = tmp_path / ".openclaw"
    sessions = folder / "agents/main/sessions"
    sessions.mkdir(parents=True)
    keys = {"agent:main:telegram:direct:42": {"sessionId": "one", "updatedAt": 1}}
    (sessions / "sessions.json").write_text(json.dumps(keys))
    lines = [
        json.dumps({"type": "session", "id": "one", "timestamp": "2026-01-05T08:00:00Z"}),
        _message("a", None, "user", "What grows here?"),
        _message("b", "a", "assistant", "Roses."),
        "{broken",
        json.dumps(
            {"type": "compaction", "id": "c", "parentId": "b", "summary": "Of roses.",
             "firstKeptEntryId": "b"}
        ),
        _message("d", "a", "user", "And there?"),
        _message("e", "c", "user", "And now?"),
        _message("f", "e", "assistant", "Tulips."),
    ]  # fmt: skip
    (sessions / "one.jsonl").write_text("\n".join(lines) + "\n")
    assert find_home(tmp_path) == folder
    main, branch = conversations(open_home(tmp_path))
    assert _said(main) == ["What grows here?", "Roses.", "And now?", "Tulips."]
    (summary,) = [item for item in main.items if isinstance(item, ForeignCompaction)]
    assert (summary.summary, summary.kept_from) == ("Of roses.", "b")
    assert [item.kind for item in main.items if isinstance(item, ForeignEvent)] == [
        "session",
        "damaged",
    ]
    assert main.routes[0].key == "agent:main:telegram:dm:42"
    assert _said(branch) == ["What grows here?", "And there?"]
    assert (branch.branch_of, branch.routes) == ("one", [])


def write_session(folder: Path, name: str, *lines: str) -> Path:
    file = folder / "agents/main/sessions" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_what_is_off_the_path_without_a_message_is_kept_beside(tmp_path: Path) -> None:
    label = {"type": "label", "id": "l", "parentId": "a", "targetId": "a", "label": "roses"}
    lines = [
        _message("a", None, "user", "What grows here?"),
        json.dumps(label),
        _message("b", "a", "assistant", "Roses."),
    ]
    write_session(tmp_path, "one.jsonl", *lines)
    (found,) = conversations(open_home(tmp_path))
    assert [item.id for item in found.items] == ["a", "l", "b"]


def test_a_reset_ends_what_the_model_is_sent(tmp_path: Path) -> None:
    reset = {"type": "reset", "id": "r", "parentId": "a", "reason": "daily"}
    lines = [_message("a", None, "user", "Hello"), json.dumps(reset)]
    write_session(tmp_path, "one.jsonl", *lines, _message("b", "r", "user", "Hello again"))
    (found,) = conversations(open_home(tmp_path))
    (ended,) = [item for item in found.items if isinstance(item, ForeignCompaction)]
    assert "begun anew: daily" in ended.summary
    assert _said(found) == ["Hello", "Hello again"]


def test_forks_and_sessions_that_were_reset_are_conversations(tmp_path: Path) -> None:
    said = _message("a", None, "user", "Hello")
    head = json.dumps({"type": "session", "id": "fork", "parentSession": "/x/one.jsonl"})
    write_session(tmp_path, "one.jsonl.reset.2026-01-05T08-00-00Z", said)
    write_session(tmp_path, "fork.jsonl", head, said)
    write_session(tmp_path, "sub.jsonl", said)
    keys = {
        "agent:main:sub:1": {"sessionId": "sub", "spawnedBy": "agent:main:main"},
        "agent:main:main": {"sessionId": "fork"},
    }
    (tmp_path / "agents/main/sessions/sessions.json").write_text(json.dumps(keys))
    found = {one.id: one.branch_of for one in conversations(open_home(tmp_path))}
    assert found == {"one": None, "fork": "one", "sub": "fork"}


@contextmanager
def changed(folder: Path) -> Generator[sqlite3.Connection]:
    """Change the database of the sample's agent."""
    file = folder / "agents/main/agent/openclaw-agent.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        yield database
        database.commit()


def list_items(folder: Path) -> dict[str, list[ForeignItem]]:
    return {one.id: list(one.items) for one in conversations(open_home(folder))}


def pack(text: str) -> bytes:
    return zstandard.ZstdCompressor().compress(text.encode())


def test_events_that_are_compressed_are_read(tmp_path: Path) -> None:
    folder = copy_sample("openclaw", tmp_path)
    before = list_items(folder)
    with changed(folder) as database:
        database.create_function("pack", 1, pack)
        database.execute(
            "UPDATE transcript_events SET event_zstd = pack(event_json), event_json = NULL,"
            " event_utf8_bytes = 9, navigation_json = NULL WHERE seq % 2"
        )
    assert list_items(folder) == before


def test_what_cannot_be_decompressed_is_kept_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_sample("openclaw", tmp_path)
    with changed(folder) as database:
        (name,) = database.execute("SELECT min(session_id) FROM transcript_events").fetchone()
        database.execute(
            "UPDATE transcript_events SET event_zstd = x'00', event_json = NULL"
            " WHERE session_id = ? AND seq = 1",
            (name,),
        )
    damaged = [one for one in list_items(folder)[name] if isinstance(one, ForeignEvent)]
    assert [one.payload for one in damaged if one.kind == "damaged"] == ['"zstd 00"']
    monkeypatch.setitem(sys.modules, "zstandard", None)
    found = list(open_home(folder).iter_conversations())
    (problem,) = [one for one in found if isinstance(one, ForeignProblem)]
    assert name in problem.place
    assert "clew-gateway[zstd]" in problem.reason
    assert len(found) == 11


def test_sessions_in_archives_are_read(tmp_path: Path) -> None:
    """One that was not used for long, and one that was reset."""
    folder = copy_sample("openclaw", tmp_path)
    before = list_items(folder)
    with changed(folder) as database:
        cold, reset = [name for name in sorted(before) if name != OLDER][:2]
        query = "SELECT seq, event_json FROM transcript_events WHERE session_id = ? ORDER BY seq"
        events = database.execute(query, (cold,)).fetchall()
        rows = [{"kind": "event", "row": {"seq": seq, "event_json": text}} for seq, text in events]
        told = "\n".join(map(json.dumps, [{"kind": "header"}, *rows]))
        texts = [text for _, text in database.execute(query, (reset,))]
        database.executescript(
            """
            CREATE TABLE session_transcript_cold_archives (session_id, archive_name, archive_blob);
            CREATE TABLE session_transcript_archives (
                session_id, created_at, reason, encoding, archive_blob
            );
            """
        )
        database.execute(
            "INSERT INTO session_transcript_cold_archives VALUES (?, 'a.jsonl.zst', NULL)", (cold,)
        )
        database.execute(
            "INSERT INTO session_transcript_archives VALUES (?, 1, 'reset', 'identity', ?)",
            (reset, "\n".join(texts).encode()),
        )
        for table in ("transcript_events", "session_windows"):
            names = (reset, cold if table == "transcript_events" else "")
            database.execute(f"DELETE FROM {table} WHERE session_id IN (?, ?)", names)
    file = folder / "agents/main/sessions/cold/a.jsonl.zst"
    file.parent.mkdir()
    file.write_bytes(pack(told))
    after = list_items(folder)
    assert after[cold] == before[cold]
    assert len(after[reset]) == len(before[reset])
    assert set(after) == set(before)


def test_a_fork_in_the_database_names_its_source(tmp_path: Path) -> None:
    folder = copy_sample("openclaw", tmp_path)
    one, other = [name for name in sorted(list_items(folder)) if name != OLDER][:2]
    with changed(folder) as database:
        database.execute(
            "UPDATE session_nodes SET fork_source_session_id = ? WHERE current_session_id = ?",
            (one, other),
        )
    sources = {found.id: found.branch_of for found in conversations(open_home(folder))}
    assert sources.pop(other) == one
    assert set(sources.values()) == {None}


def test_jobs_of_its_database_are_listed_and_its_own_upkeep_is_named(tmp_path: Path) -> None:
    found = open_home(copy_sample("openclaw", tmp_path)).list_jobs()
    made = {one.title: one for one in found if isinstance(one, ForeignJob)}
    assert {name: one.schedule for name, one in made.items()} == {
        "Look": "every 7200",
        "Prune": "at 1803888000000",
    }
    assert [one.prompt for one in made.values()] == ["Look at them.", "Prune the roses."]
    reasons = [one.reason for one in found if isinstance(one, ForeignProblem)]
    assert reasons == ["OpenClaw made it for its own upkeep"] * 3


def job(name: str, **more: object) -> dict[str, object]:
    payload = {"kind": "agentTurn", "message": f"{name} the roses."}
    return {"id": name, "name": name, "enabled": True, "payload": payload, **more}


def test_jobs_people_and_settings_are_listed(tmp_path: Path) -> None:
    config = """{ // as people write it
      "agents": {"defaults": {"model": {"primary": "fake/one"}, "userTimezone": "Europe/Berlin"}},
      "channels": {"telegram": {"allowFrom": ["42", "*"], "botToken": "of-no-use"}},
    }"""
    daily = {"kind": "cron", "expr": "0 8 * * *", "tz": "Europe/Berlin"}
    told = {"mode": "announce", "channel": "telegram", "to": "-100:topic:7"}
    text = {"kind": "systemEvent", "text": "Look."}
    jobs = [
        job("Water", schedule=daily, delivery=told, enabled=False),
        job("Look", schedule={"kind": "every", "everyMs": 7200000}, payload=text),
        job("Prune", schedule={"kind": "at", "at": "2027-03-01T08:00:00Z"},
            sessionKey="agent:main:discord:direct:5"),
        job("Dream", schedule=daily, declarationKey="memory-core:dreaming"),
        job("Odd", schedule={"kind": "moon"}),
    ]  # fmt: skip
    (tmp_path / "agents").mkdir()
    (tmp_path / "openclaw.json").write_text(config, encoding="utf-8")
    (tmp_path / "cron").mkdir()
    (tmp_path / "cron/jobs.json").write_text(json.dumps({"version": 1, "jobs": jobs}))
    (tmp_path / "state").mkdir()
    with closing(sqlite3.connect(tmp_path / "state/openclaw.sqlite")) as database:
        database.execute("CREATE TABLE cron_jobs (job_id, enabled, sort_order, job_json)")
        database.execute("INSERT INTO cron_jobs VALUES ('Water', 1, 0, ?)", (json.dumps(jobs[0]),))
        database.commit()
    home = open_home(tmp_path)
    found = home.list_jobs()
    made = {one.id: one for one in found if isinstance(one, ForeignJob)}
    assert [one.schedule for one in made.values()] == [
        "0 8 * * *",
        "every 7200",
        "at 1803888000000",
    ]
    assert [one.prompt for one in made.values()] == [
        "Water the roses.",
        "Look.",
        "Prune the roses.",
    ]
    assert made["Water"].zone == "Europe/Berlin"
    assert made["Water"].enabled, "the database is newer than the file"
    routes = [one.route.key for one in made.values() if one.route]
    assert routes == ["agent:main:telegram:group:-100:thread:7", "agent:main:discord:dm:5"]
    problems = [one.reason for one in found if isinstance(one, ForeignProblem)]
    assert problems == ["OpenClaw made it for its own upkeep", "its schedule cannot be read"]
    assert [(one.platform, one.id) for one in home.list_people()] == [("telegram", "42")]
    settings = {one.name: one.value for one in home.list_settings()}
    assert settings == {"model.name": "fake:one", "schedule.timezone": "Europe/Berlin"}
    assert [one.name for one in home.list_secrets()] == ["channels.telegram.botToken"]


def _message(name: str, parent: str | None, role: str, text: str) -> str:
    said = {"role": role, "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "message", "id": name, "parentId": parent, "message": said})


def _said(conversation: ForeignConversation) -> list[str]:
    return [
        item.text
        for item in conversation.items
        if isinstance(item, ForeignMessage) and item.role is not Role.TOOL
    ]


def test_what_it_remembers_is_listed(tmp_path: Path) -> None:
    home = open_home(copy_sample("openclaw", tmp_path))
    assert ["roses" in one.text or "tulips" in one.text for one in home.list_memory()] == [
        True,
        True,
    ]
