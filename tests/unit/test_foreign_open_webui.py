"""The chats of Open WebUI are read whole, from its database or an export."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

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
from clew.foreign.readers import open_webui
from tests.foreign.folders import check_conversation, conversations, copy_sample, list_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_sample("open_webui", tmp_path)


def list_stored(folder: Path) -> dict[str, dict[str, Any]]:
    with closing(sqlite3.connect(folder / "webui.db")) as database:
        rows = database.execute("SELECT chat FROM chat").fetchall()
    chats = [json.loads(row[0]) for row in rows]
    return {key: one for chat in chats for key, one in chat["history"]["messages"].items()}


def change(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "webui.db")) as database:
        database.execute(statement, values)
        database.commit()


def test_every_stored_message_is_there(folder: Path) -> None:
    stored = list_stored(folder)
    found = conversations(open_webui.open_home(folder))
    read = {item.id.partition("/")[0] for one in found for item in one.items}
    assert {name.partition(":")[0] for name in read} - {"prompt"} == stored.keys()
    with closing(sqlite3.connect(folder / "webui.db")) as database:
        assert database.execute("SELECT COUNT(*) FROM chat_message").fetchone()[0] == len(stored)
    for one in found:
        check_conversation(one)


def test_calls_are_found_in_both_forms(folder: Path) -> None:
    stored = list_stored(folder).values()
    expected = sum(
        str(one["content"]).count('type="tool_calls"')
        + sum(item["type"] == "function_call" for item in one.get("output") or ())
        for one in stored
    )
    items = [item for one in conversations(open_webui.open_home(folder)) for item in one.items]
    messages = [item for item in items if isinstance(item, ForeignMessage)]
    calls = [call for item in messages for call in item.calls]
    results = [result for item in messages for result in item.results]
    assert len(calls) == len(results) == expected > 0
    assert {(call.name, call.arguments) for call in calls} == {("weather", '{"city": "Kiel"}')}
    assert {result.text for result in results} == {"rain", '{"rain": 0}'}
    assert {item.reasoning for item in messages if item.reasoning} == {"Is it wet?"}
    texts = [item.text for item in messages if item.role is Role.ASSISTANT]
    assert "It rains, 0." in texts
    assert not [text for text in texts if "<details" in text]


def test_an_edited_question_is_a_branch_and_an_answer_made_again_stays_beside(
    folder: Path,
) -> None:
    found = conversations(open_webui.open_home(folder))
    branches = [one for one in found if one.branch_of]
    assert len(branches) == 2
    assert {one.branch_of for one in branches} <= {one.id for one in found}
    events = [item for one in found for item in one.items if isinstance(item, ForeignEvent)]
    assert {item.kind for item in events} == {"variant", "system", "sources", "empty", "error"}


def test_a_summary_stands_before_its_message(folder: Path) -> None:
    found = conversations(open_webui.open_home(folder))
    after = [
        (item.summary, one.items[place + 1])
        for one in found
        for place, item in enumerate(one.items)
        if isinstance(item, ForeignCompaction)
    ]
    assert len(after) == 2
    for summary, item in after:
        assert summary == "They spoke of roses."
        assert isinstance(item, ForeignMessage)
        assert item.text == "And now?"


def test_files_tokens_and_people_come_along(folder: Path) -> None:
    items = [item for one in conversations(open_webui.open_home(folder)) for item in one.items]
    messages = [item for item in items if isinstance(item, ForeignMessage)]
    files = {(file.name, file.media_type, file.content) for one in messages for file in one.files}
    assert ("rose.txt", "text/plain", b"rose") in files
    assert len(files) == 2
    assert {one.sender.name for one in messages if one.sender} == {"Ada"}
    usage = [(one.usage.input_tokens, one.usage.output_tokens) for one in messages if one.usage]
    assert set(usage) == {(9, 3), (7, 2)}


def test_a_file_outside_of_the_uploads_is_not_read(folder: Path) -> None:
    change(folder, "UPDATE file SET path = '/data/uploads/../webui.db'")
    items = [item for one in conversations(open_webui.open_home(folder)) for item in one.items]
    contents = [
        file.content
        for one in items
        if isinstance(one, ForeignMessage)
        for file in one.files
        if file.name == "rose.txt"
    ]
    assert set(contents) == {None}


def test_an_export_is_the_same_as_its_database(folder: Path) -> None:
    exported = {one.id: one for one in conversations(open_webui.open_home(folder / "chats.json"))}
    stored = {one.id: one for one in conversations(open_webui.open_home(folder))}
    assert exported.keys() <= stored.keys()
    for name, one in exported.items():
        assert [item.id for item in one.items] == [item.id for item in stored[name].items]


def test_reading_again_gives_the_same_and_leaves_no_trace(folder: Path) -> None:
    change(folder, "PRAGMA journal_mode = WAL")
    before = list_tree(folder)
    first = conversations(open_webui.open_home(folder))
    assert conversations(open_webui.open_home(folder)) == first
    assert list_tree(folder) == before
    assert conversations(open_webui.open_home(folder), since=2_000_000_000_000) == []


def test_messages_that_only_the_table_has_are_read(folder: Path) -> None:
    change(folder, 'UPDATE chat SET chat = \'{"history": {"mess\'')
    stored = conversations(open_webui.open_home(folder))
    with closing(sqlite3.connect(folder / "webui.db")) as database:
        count = database.execute("SELECT COUNT(*) FROM chat_message").fetchone()[0]
    names = {item.id for one in stored for item in one.items}
    assert len({name.partition("/")[0].partition(":")[0] for name in names}) == count
    change(folder, "DELETE FROM chat_message")
    found = list(open_webui.open_home(folder).iter_conversations())
    assert {type(one) for one in found} == {ForeignProblem}
    assert len(found) == 18


def test_damaged_messages_become_events(folder: Path) -> None:
    messages = {
        "a": {"role": "user", "content": "\ud800\0", "timestamp": "1767600000000"},
        "b": 7,
        "c": {"role": "oracle", "content": ["x"], "parentId": "a"},
        "d": {"role": "assistant", "content": '<details type="tool_calls" id="c', "parentId": "c"},
    }
    chat = {"history": {"messages": messages, "currentId": "d"}}
    change(folder, "DELETE FROM chat_message")
    change(folder, "DELETE FROM chat WHERE id NOT IN (SELECT id FROM chat LIMIT 1)")
    change(folder, "UPDATE chat SET chat = ?", json.dumps(chat))
    found = list(open_webui.open_home(folder).iter_conversations())
    read = [one for one in found if isinstance(one, ForeignConversation)]
    kinds = [
        (item.id, item.kind if isinstance(item, ForeignEvent) else "message")
        for one in read
        for item in one.items
    ]
    assert sorted(kinds) == [("a", "message"), ("b", "damaged"), ("c", "unknown"), ("d", "message")]
    assert read[0].items[0].at == 1767600000000


def test_the_first_form_of_a_chat_is_a_list(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    file.write_text(json.dumps({"id": "old", "title": "Old", "messages": messages}))
    (one,) = conversations(open_webui.open_home(file))
    assert [item.id for item in one.items] == ["1", "2"]


def test_the_rest_is_listed_and_something_else_refused(folder: Path, tmp_path: Path) -> None:
    home = open_webui.open_home(folder)
    assert [(one.name, one.text) for one in home.list_memory()] == [
        ("memory of Ada", "- The garden is in the north.")
    ]
    assert [one.name for one in home.list_secrets()] == ["openai.api_keys"]
    with pytest.raises(UsageError, match=r"webui\.db"):
        open_webui.open_home(tmp_path)
    (folder / "webui.db").write_bytes(b"nothing")
    with pytest.raises(UsageError, match="backup"):
        open_webui.open_home(folder)
