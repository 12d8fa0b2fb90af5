"""What nanobot stored is read whole."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from clew.core.entry import Role
from clew.errors import UsageError
from clew.foreign.conversations import (
    ForeignCompaction,
    ForeignEvent,
    ForeignMessage,
    ForeignProblem,
)
from clew.foreign.readers import nanobot
from tests.foreign.folders import check_conversation, conversations, copy_sample, list_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_sample("nanobot", tmp_path)


def list_records(folder: Path) -> list[dict[str, object]]:
    files = folder.rglob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_every_stored_message_is_there_once(folder: Path) -> None:
    found = conversations(nanobot.open_home(folder))
    records = [one for one in list_records(folder) if "_type" not in one]
    beside = [json.loads(file.read_text()) for file in folder.rglob("*.checkpoint.json")]
    inside = [file.read_text() for file in folder.rglob("*.jsonl")]
    # Each of the sample has a message and one result.
    unfinished = 2 * (len(beside) + sum('"runtime_checkpoint"' in text for text in inside))
    heads = [one for one in list_records(folder) if one.get("_type") == "metadata"]
    at_boundary = [one for one in heads if one.get("last_archived")]
    hidden = [one for one in records if one.get("_hidden_history")]
    items = [item for one in found for item in one.items]
    compactions = [item for item in items if isinstance(item, ForeignCompaction)]
    # The last of the hidden marks of a session is its compaction.
    marked = sum(1 for one in at_boundary if "_last_summary" in str(one["metadata"]))
    assert len(compactions) == len(at_boundary)
    assert len(items) - len(compactions) + marked == len(records) + unfinished
    assert hidden
    assert unfinished
    for one in found:
        check_conversation(one)


def test_a_summary_stands_where_the_context_begins(folder: Path) -> None:
    found = conversations(nanobot.open_home(folder))
    texts = [
        (item.summary, type(one.items[place + 1]))
        for one in found
        for place, item in enumerate(one.items)
        if isinstance(item, ForeignCompaction)
    ]
    assert ("The garden, 0.", ForeignMessage) in texts
    assert ("The garden, 1.", ForeignMessage) in texts
    earlier = [item for one in found for item in one.items if isinstance(item, ForeignEvent)]
    assert "compaction" in {one.kind for one in earlier}


def test_chats_lead_to_their_conversations(folder: Path) -> None:
    found = {one.id: one for one in conversations(nanobot.open_home(folder))}
    keys = {name: [route.key for route in one.routes] for name, one in found.items()}
    assert keys["telegram:1000"] == ["agent:main:telegram:dm:1000"]
    assert keys["telegram:-1001001:topic:7"] == ["agent:main:telegram:group:-1001001:thread:7"]
    assert keys["slack:C1003:1700.5"] == ["agent:main:slack:group:C1003:thread:1700.5"]
    assert keys["discord:1002"] == ["agent:main:discord:dm:1002", "agent:main:discord:group:1002"]
    assert keys["cli:direct1004"] == []


def test_reading_again_gives_the_same_and_leaves_no_trace(folder: Path) -> None:
    before = list_tree(folder)
    first = conversations(nanobot.open_home(folder))
    assert conversations(nanobot.open_home(folder)) == first
    assert list_tree(folder) == before
    assert conversations(nanobot.open_home(folder), since=2_000_000_000_000) == []


def test_a_turn_that_runs_is_marked_and_one_that_crashed_is_kept(folder: Path) -> None:
    file = next(folder.rglob("*.checkpoint.json"))
    session = file.with_name(file.name.replace(".checkpoint.json", ".jsonl"))
    home = nanobot.open_home(session)
    os.utime(session)
    assert conversations(home)[0].is_growing
    session.write_text(session.read_text().replace('"updated_at": "2026', '"updated_at": "2025'))
    os.utime(session, (1, 1))
    one = conversations(home)[0]
    assert not one.is_growing
    *_, call, result = one.items
    assert isinstance(call, ForeignMessage)
    assert isinstance(result, ForeignMessage)
    assert [each.id for each in call.calls] == ["call_c", "call_d"]
    assert result.role is Role.TOOL
    assert result.results[0].text == "half"


def test_lines_that_are_damaged_become_events(tmp_path: Path) -> None:
    file = tmp_path / "telegram_42.jsonl"
    file.write_bytes(
        b'{"role": "user", "content": "a", "timestamp": "1767600000"}\n\xff\x00\n'
        b'{"_type": "provider_state", "state": 1}\n{"role": "oracle", "content": "b"}\n'
        b'{"role": "user", "content": "\\ud800"}\n{"role": "user", "cont'
    )
    (one,) = conversations(nanobot.open_home(file))
    kinds = [item.kind if isinstance(item, ForeignEvent) else "message" for item in one.items]
    assert kinds == ["message", "damaged", "provider-state", "unknown", "message", "damaged"]
    assert one.id == "telegram:42"
    assert one.items[0].at == 1767600000000


def test_only_files_of_its_own_folder_are_read(folder: Path, tmp_path: Path) -> None:
    media = folder / "media" / "rose.png"
    media.parent.mkdir()
    media.write_bytes(b"rose")
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    record = {"role": "user", "content": "look", "media": [str(media), str(secret), 7]}
    (folder / "sessions" / "cli_x.jsonl").write_text(json.dumps(record))
    one = next(one for one in conversations(nanobot.open_home(folder)) if one.id == "cli:x")
    assert isinstance(one.items[0], ForeignMessage)
    assert [file.content for file in one.items[0].files] == [b"rose", None, None]


def test_the_rest_of_a_home_is_listed(folder: Path) -> None:
    home = nanobot.open_home(folder)
    assert [one.name for one in home.list_memory()] == ["MEMORY.md", "USER.md"]
    assert [one.name for one in home.list_skills()] == ["pruning"]
    jobs = [one for one in home.list_jobs() if not isinstance(one, ForeignProblem)]
    assert [(one.schedule, one.zone) for one in jobs] == [
        ("0 7 * * *", "Europe/Berlin"), ("every 7200", ""),
    ]  # fmt: skip
    assert jobs[0].route is not None
    assert jobs[0].route.key == "agent:main:telegram:dm:42"
    assert [(one.id, one.name) for one in home.list_people()] == [("43", ""), ("42", "ada")]
    assert [(one.name, one.value) for one in home.list_settings()] == [
        ("model.name", "anthropic:claude-opus-4-5"),
        ("schedule.timezone", "Europe/Berlin"),
        ("agent.max_steps", "50"),
    ]
    assert [one.name for one in home.list_secrets()] == [
        "channels.telegram.token", "providers.anthropic.apiKey",
    ]  # fmt: skip


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"config\.json"):
        nanobot.open_home(tmp_path)
