"""The data export of ChatGPT is read whole: as a zip, unpacked, or cut."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.entry import Role
from clew.errors import UsageError
from clew.foreign.conversations import (
    ForeignConversation,
    ForeignEvent,
    ForeignMessage,
    ForeignProblem,
)
from clew.foreign.json_arrays import BrokenArray, iter_array
from clew.foreign.message_trees import MessageNode, split_tree
from clew.foreign.readers import chatgpt
from tests.foreign.folders import SAMPLES, check_conversation, conversations, copy_sample

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = SAMPLES / "chatgpt"


def load() -> list[dict[str, Any]]:
    return json.loads((SAMPLE / "conversations.json").read_text())


def pack(folder: Path, to: Path) -> Path:
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    return to


def test_every_stored_message_is_there() -> None:
    stored = {
        key for one in load() for key, node in one["mapping"].items() if node["message"] is not None
    }
    thoughts = sum(
        node["message"]["content"]["content_type"] == "thoughts"
        for one in load()
        for node in one["mapping"].values()
        if node["message"]
    )
    found = conversations(chatgpt.open_home(SAMPLE))
    items = [item for one in found for item in one.items]
    assert {item.id for item in items} <= stored
    told = [item for item in items if isinstance(item, ForeignMessage) and item.reasoning]
    assert len({item.id for item in items}) + len(told) == len(stored)
    assert len(told) == thoughts > 0
    for one in found:
        check_conversation(one)


def test_a_zip_and_its_folder_are_the_same(tmp_path: Path) -> None:
    packed = pack(SAMPLE, tmp_path / "export.zip")
    assert conversations(chatgpt.open_home(packed)) == conversations(chatgpt.open_home(SAMPLE))
    single = chatgpt.open_home(SAMPLE / "conversations.json")
    assert conversations(single) == conversations(chatgpt.open_home(SAMPLE))


def test_an_edited_question_is_a_branch_and_an_answer_made_again_stays_beside() -> None:
    found = conversations(chatgpt.open_home(SAMPLE))
    branches = [one for one in found if one.branch_of]
    edited = sum(
        len(node["children"]) > 1
        and one["mapping"][node["children"][0]]["message"]["author"]["role"] == "user"
        for one in load()
        for node in one["mapping"].values()
    )
    assert len(branches) == edited > 0
    origins = {one.id: one for one in found}
    for one in branches:
        origin = origins[one.branch_of or ""]
        assert isinstance(origin.items[-1], ForeignMessage)
        assert origin.items[-1].text == "The other answer"
    beside = [item for one in found for item in one.items if isinstance(item, ForeignEvent)]
    variants = [item for item in beside if item.kind == "variant"]
    assert variants
    assert all("roses" in item.text for item in variants)


def test_calls_get_their_results_and_messages_their_files() -> None:
    items = [item for one in conversations(chatgpt.open_home(SAMPLE)) for item in one.items]
    messages = [item for item in items if isinstance(item, ForeignMessage)]
    calls = {call.id: call.name for item in messages for call in item.calls}
    results = {result.call_id: result.name for item in messages for result in item.results}
    assert calls == results
    assert set(calls.values()) == {"python", "dalle.text2im"}
    files = [
        (item.role, file.name, file.media_type, file.content is not None)
        for item in messages
        for file in item.files
    ]
    assert set(files) == {
        (Role.USER, "rose.png", "image/png", True),
        (Role.TOOL, "file_lost", "", False),
    }


def test_what_is_no_message_is_an_event() -> None:
    items = [item for one in conversations(chatgpt.open_home(SAMPLE)) for item in one.items]
    kinds = {item.kind for item in items if isinstance(item, ForeignEvent)}
    assert kinds == {"system", "variant", "reasoning", "instructions"}


def test_an_export_that_was_cut_gives_what_is_whole(tmp_path: Path) -> None:
    folder = copy_sample("chatgpt", tmp_path)
    file = folder / "conversations.json"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    found = list(chatgpt.open_home(folder).iter_conversations())
    read = [one for one in found if isinstance(one, ForeignConversation)]
    assert 5 < len(read) < 21
    assert isinstance(found[-1], ForeignProblem)
    assert "ends early" in found[-1].reason
    packed = pack(folder, tmp_path / "export.zip")
    packed.write_bytes(packed.read_bytes()[:500])
    with pytest.raises(UsageError, match="download it again"):
        chatgpt.open_home(packed)
    with pytest.raises(UsageError, match="there is no"):
        chatgpt.open_home(folder / "nothing.zip")
    file.unlink()
    with pytest.raises(UsageError, match=r"conversations\.json"):
        chatgpt.open_home(folder)


def test_damaged_nodes_and_texts_do_not_stop_it(tmp_path: Path) -> None:
    told = load()[0]
    keys = list(told["mapping"])
    told["mapping"][keys[-1]]["message"] = 7
    told["mapping"][keys[-2]]["parent"] = "nowhere"
    told["mapping"]["circle"] = {"message": {"content": "\ud800\0"}, "parent": "circle"}
    told["create_time"] = "2026-01-05T08:00:00Z"
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "conversations.json").write_text(json.dumps([told, None, {"id": "x"}]))
    found = list(chatgpt.open_home(folder).iter_conversations())
    assert [type(one) for one in found[-2:]] == [ForeignProblem] * 2
    read = [one for one in found if isinstance(one, ForeignConversation)]
    names = {item.id for one in read for item in one.items}
    assert names == {key for key in told["mapping"] if key != "client-created-root"}
    assert read[0].created_at == 1767600000000


@given(st.lists(st.one_of(st.integers(), st.text(), st.lists(st.integers())), max_size=20))
def test_an_array_is_read_as_by_json(values: list[Any]) -> None:
    text = json.dumps(values)
    assert list(iter_array(io.StringIO(text))) == values
    cut = iter_array(io.StringIO(text[:-1]))
    assert [one for _, one in zip(values, cut, strict=False)] == values
    with pytest.raises(BrokenArray):
        next(cut)


@given(st.data())
def test_each_message_of_a_tree_is_new_in_one_line(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    nodes = {
        str(number): MessageNode(
            parent=data.draw(st.none() | st.integers(0, count).map(str)),
            is_user=data.draw(st.booleans()),
        )
        for number in range(count)
    }
    lines = split_tree(nodes, data.draw(st.integers(0, count).map(str)))
    seen: list[str] = []
    for line in lines:
        seen += [one for one in line.path if one not in seen]
        beside = [one for several in line.beside.values() for one in several]
        assert not set(beside) & set(seen)
        seen += beside
    assert sorted(seen) == sorted(nodes)
