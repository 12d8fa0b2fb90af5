"""Sessions of OpenCode are read whole, from its database and from the files before it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from clew.core.entry import Role
from clew.core.payload import as_object
from clew.errors import UsageError
from clew.foreign.conversations import (
    ForeignCompaction,
    ForeignConversation,
    ForeignEvent,
    ForeignMessage,
)
from clew.foreign.readers.opencode import find_home, open_home
from tests.foreign.folders import check_conversation, conversations, copy_sample, list_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDED = ("completed", "error")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_sample("opencode", tmp_path)


def list_rows(folder: Path) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield session, message and id of each part that is stored, in either form."""
    with closing(sqlite3.connect(folder / "opencode.db")) as database:
        for *names, data in database.execute("SELECT session_id, message_id, id, data FROM part"):
            yield names[0], names[1], names[2], json.loads(data)
    for file in folder.rglob("part/**/*.json"):
        data = json.loads(file.read_text(encoding="utf-8"))
        yield data["sessionID"], data["messageID"], data["id"], data


def read(folder: Path) -> dict[str, ForeignConversation]:
    return {one.id: one for one in conversations(open_home(folder))}


def find(folder: Path, title: str) -> ForeignConversation:
    """Return the first conversation with a title: the one of the database."""
    return next(one for one in conversations(open_home(folder)) if one.title == title)


def messages(conversation: ForeignConversation, role: Role) -> list[ForeignMessage]:
    return [
        one for one in conversation.items if isinstance(one, ForeignMessage) and one.role is role
    ]


def list_kept(conversation: ForeignConversation) -> list[str]:
    """Return the ids of the parts that its events hold as they were stored."""
    events = [one for one in conversation.items if isinstance(one, ForeignEvent)]
    stored = [as_object(json.loads(one.payload)) for one in events]
    return [part["id"] for one in stored for part in one.get("parts", ())]


def test_every_part_is_in_a_message_or_in_an_event(folder: Path) -> None:
    before = list_tree(folder)
    found = read(folder)
    assert list_tree(folder) == before
    rows = list(list_rows(folder))
    assert len(rows) > 200
    assert set(found) == {session for session, *_ in rows}
    for one in found.values():
        check_conversation(one)
        kept = list_kept(one)
        assert len(kept) == len(set(kept))
        ours = [row for row in rows if row[0] == one.id]
        said = [data for _, _, name, data in ours if name not in kept]
        assert len(said) + len(kept) == len(ours)
        assert {data["type"] for data in said} <= {"text", "reasoning", "tool", "file"}
        answers, prompts = messages(one, Role.ASSISTANT), messages(one, Role.USER)
        texts = "\n".join(item.text + item.reasoning for item in (*answers, *prompts))
        assert all(data["text"] in texts for data in said if "text" in data)
        tools = [data for data in said if data["type"] == "tool"]
        calls = [call.id for item in answers for call in item.calls]
        assert sorted(calls) == sorted(data["callID"] for data in tools)
        results = [result for item in messages(one, Role.TOOL) for result in item.results]
        assert len(results) == sum(data["state"]["status"] in ENDED for data in tools)
        files = [file for item in prompts for file in item.files]
        assert len(files) == sum(data["type"] == "file" for data in said)


def test_every_message_is_an_item_and_none_is_empty(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "opencode.db")) as database:
        rows = database.execute("SELECT session_id, id FROM message").fetchall()
    found = read(folder)
    for session, name in rows:
        assert name in {item.id for item in found[session].items}
    for one in found.values():
        assert all(
            item.text or item.calls or item.reasoning for item in messages(one, Role.ASSISTANT)
        )


def test_the_files_of_the_first_releases_are_read(folder: Path) -> None:
    (info,) = folder.glob("project/*/storage/session/info/*.json")
    found = read(folder)[info.stem]
    told = [json.loads(file.read_text()) for file in folder.rglob(f"message/{info.stem}/*.json")]
    roles = [one.role for one in found.items if isinstance(one, ForeignMessage)]
    assert roles.count(Role.USER) == sum(one["role"] == "user" for one in told) == 2
    kinds = [one.kind for one in found.items if isinstance(one, ForeignEvent)]
    assert (kinds.count("error"), kinds.count("system")) == (2, 1), "one prompt for both answers"


def test_forks_and_subagents_name_the_session_that_they_come_from(folder: Path) -> None:
    found = read(folder)
    titles = {one.title: found[one.branch_of].title for one in found.values() if one.branch_of}
    assert titles["Garden 3 (fork #1)"] == "Garden 3"
    assert titles["count (@general subagent)"].startswith("Garden")
    assert len([one for one in found.values() if one.branch_of]) == 5


def test_a_compaction_has_its_summary_in_its_place(folder: Path) -> None:
    found = find(folder, "Garden 4")
    (place,) = (
        place for place, one in enumerate(found.items) if isinstance(one, ForeignCompaction)
    )
    compaction = found.items[place]
    assert isinstance(compaction, ForeignCompaction)
    assert "summary" in compaction.summary
    after = [one.text for one in found.items[place:] if isinstance(one, ForeignMessage)]
    before = [one.text for one in found.items[:place] if isinstance(one, ForeignMessage)]
    assert any("After 4" in text for text in after)
    assert not any("After 4" in text for text in before)


def test_what_was_taken_back_aborted_or_added_is_kept_beside(folder: Path) -> None:
    kinds = {
        title: [one.kind for one in find(folder, title).items if isinstance(one, ForeignEvent)]
        for title in ("Garden 2", "Garden 5", "Garden 6", "Garden 7")
    }
    assert "system" in kinds["Garden 2"], "the text of a file that was named"
    assert "empty" in kinds["Garden 5"], "the answer in which it was killed"
    assert kinds["Garden 6"].count("reverted") == 2
    assert "aborted" in kinds["Garden 7"]


def test_files_in_a_message_have_their_bytes_and_others_their_names(folder: Path) -> None:
    (picture,) = (
        file for one in messages(find(folder, "Garden 1"), Role.USER) for file in one.files
    )
    assert (picture.name, picture.media_type) == ("rose.png", "image/png")
    assert (picture.content or b"")[:4] == b"\x89PNG"
    (notes,) = (file for one in messages(find(folder, "Garden 2"), Role.USER) for file in one.files)
    assert (notes.name, notes.content) == ("notes.txt", None)


def write(folder: Path, *told: dict[str, Any], parent: str = "msg_2") -> None:
    """Write a session of two messages as the first releases with files did."""
    base = folder / "storage"
    records = {
        "session/global/ses_1.json": {"id": "ses_1", "time": {"created": 1000, "updated": 2000}},
        "message/ses_1/msg_1.json": {"role": "user", "time": {"created": 1000}},
        "message/ses_1/msg_2.json": {"role": "assistant", "time": {"created": 1001}},
        "part/msg_1/prt_1.json": {"type": "text", "text": "What grows here?"},
    }
    records |= {f"part/{parent}/prt_{number}.json": one for number, one in enumerate(told, 2)}
    for name, record in records.items():
        file = base / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(record), encoding="utf-8")


def test_an_answer_of_several_steps_becomes_their_messages(tmp_path: Path) -> None:
    state = {"status": "completed", "input": {"at": "bed"}, "output": "roses"}
    begun = {"type": "step-start"}
    write(
        tmp_path,
        begun,
        {"type": "text", "text": "I look."},
        {"type": "tool", "callID": "c", "tool": "look", "state": state},
        begun,
        {"type": "text", "text": "Roses."},
    )
    (found,) = conversations(open_home(tmp_path))
    said = [one for one in found.items if isinstance(one, ForeignMessage)]
    assert [one.role for one in said] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert [one.text for one in said] == ["What grows here?", "I look.", "", "Roses."]


def test_damage_is_kept_and_what_is_running_has_no_result(tmp_path: Path) -> None:
    running: dict[str, object] = {"status": "running", "input": {}}
    write(
        tmp_path,
        {"type": "tool", "callID": "c", "tool": "look", "state": running},
        {"type": "never-seen", "n": 1},
    )
    (tmp_path / "storage/part/msg_2/prt_9.json").write_bytes(b'{"type": "te\xff')
    (tmp_path / "storage/message/ses_1/msg_3.json").write_text("{", encoding="utf-8")
    (found,) = conversations(open_home(tmp_path))
    assert not messages(found, Role.TOOL)
    events = [one for one in found.items if isinstance(one, ForeignEvent)]
    assert [one.kind for one in events] == ["parts", "damaged"]
    assert "never-seen" in events[0].payload
    assert '\\"te' in events[0].payload
    assert json.loads(events[1].payload)["message"] == "{"


def test_settings_memory_and_names_of_secrets_are_listed(folder: Path) -> None:
    (folder / "opencode.jsonc").write_text(
        '{"compaction": {"auto": false,}, // no\n "share": "https://a/b"}', encoding="utf-8"
    )
    login = {"anthropic": {"type": "api", "key": "of-no-use"}}
    (folder / "auth.json").write_text(json.dumps(login), encoding="utf-8")
    (folder / "AGENTS.md").write_text("Water the roses.", encoding="utf-8")
    skill = folder / "skill/pruning/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: pruning\n---\n", encoding="utf-8")
    home = open_home(folder)
    told = {one.name: one.value for one in home.list_settings()}
    assert told == {"model.name": "fake:fake-model", "compaction.enabled": "false"}
    secrets = [one.name for one in home.list_secrets()]
    assert secrets == ["provider.fake.options.apiKey", "anthropic"]
    assert [one.text for one in home.list_memory()] == ["Water the roses."]
    assert [one.name for one in home.list_skills()] == ["pruning"]


def test_a_home_is_found_only_with_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert find_home(tmp_path) is None
    with pytest.raises(UsageError, match="no sessions of OpenCode"):
        open_home(tmp_path)
    usual = tmp_path / ".local/share/opencode"
    (usual / "storage/session").mkdir(parents=True)
    assert find_home(tmp_path) == usual
    assert list(open_home(tmp_path).iter_conversations()) == []
