"""Sessions of OpenClaw are read whole, from both of its stores."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from clew.core.entry import Role
from clew.foreign.conversations import ForeignCompaction, ForeignEvent, ForeignMessage
from clew.foreign.readers.openclaw import find_home, open_home
from tests.foreign.folders import check_conversation, conversations, copy_sample, list_tree

if TYPE_CHECKING:
    from pathlib import Path

    from clew.foreign.conversations import ForeignConversation


def test_every_event_of_the_database_is_a_part_of_its_conversation(tmp_path: Path) -> None:
    folder = copy_sample("openclaw", tmp_path)
    before = list_tree(folder)
    found = conversations(open_home(folder))
    assert list_tree(folder) == before
    file = folder / "agents/main/agent/openclaw-agent.sqlite"
    with closing(sqlite3.connect(file)) as database:
        events = database.execute("SELECT session_id, event_json FROM transcript_events").fetchall()
        keys = dict(database.execute("SELECT session_id, session_key FROM session_windows"))
    assert {one.id for one in found} == set(keys)
    for one in found:
        check_conversation(one)
        told = [json.loads(text) for session, text in events if session == one.id]
        messages = [item for item in one.items if isinstance(item, ForeignMessage)]
        assert len(one.items) == len(told)
        assert len(messages) == sum(event["type"] == "message" for event in told)
        assert [route.chat for route in one.routes] == _list_chats(keys[one.id])


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
