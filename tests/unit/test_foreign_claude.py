"""Sessions of Claude Code are read whole."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.entry import Role
from clew.foreign.conversations import (
    ForeignCompaction,
    ForeignConversation,
    ForeignEvent,
    ForeignMessage,
)
from clew.foreign.readers.claude import find_home, open_home

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLE = Path(__file__).parents[1] / "foreign" / "samples" / "claude"
SESSION = "00000000-0000-4000-8000-00000000000"


def read(path: Path) -> list[ForeignConversation]:
    found = list(open_home(path).iter_conversations())
    assert all(isinstance(one, ForeignConversation) for one in found), found
    return [one for one in found if isinstance(one, ForeignConversation)]


def messages(conversation: ForeignConversation, role: Role) -> list[ForeignMessage]:
    return [
        one for one in conversation.items if isinstance(one, ForeignMessage) and one.role is role
    ]


def count_lines(lines: Sequence[dict[str, Any]]) -> int:
    """Each line is an item, except that the blocks of one answer are one, and a summary is none."""
    answers = {one["message"]["id"] for one in lines if one["type"] == "assistant"}
    others = [one for one in lines if one["type"] != "assistant"]
    return len(answers) + len(others) - sum(1 for one in others if one.get("isCompactSummary"))


def test_every_line_is_a_message_a_compaction_or_an_event() -> None:
    for conversation in read(SAMPLE):
        (file,) = SAMPLE.rglob(f"{conversation.id}.jsonl")
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert len(conversation.items) == count_lines(lines)
        calls = [call for one in messages(conversation, Role.ASSISTANT) for call in one.calls]
        results = [one for message in messages(conversation, Role.TOOL) for one in message.results]
        blocks = [
            str(block["type"])
            for line in lines
            for block in line.get("message", {}).get("content", ())
            if not isinstance(block, str)
        ]
        assert (len(calls), len(results)) == (blocks.count("tool_use"), blocks.count("tool_result"))
        assert {one.call_id for one in results} <= {one.id for one in calls}


def test_a_reading_is_the_same_as_the_one_before() -> None:
    assert read(SAMPLE) == read(SAMPLE)


def test_a_compaction_has_its_summary_and_the_first_message_that_stayed() -> None:
    (found,) = (one for one in read(SAMPLE) if one.id == f"{SESSION}5")
    (compaction,) = (one for one in found.items if isinstance(one, ForeignCompaction))
    assert "summary" in compaction.summary
    assert compaction.kept_from in {one.id for one in messages(found, Role.ASSISTANT)} | {
        one.id for one in messages(found, Role.USER)
    }


def test_forks_and_subagents_name_the_session_that_they_come_from(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "home")
    # The source is older than its fork: a checkout does not keep the times.
    for number, file in enumerate(sorted(tmp_path.rglob("*.jsonl"))):
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    sources = {one.id: one.branch_of for one in read(tmp_path / "home") if one.branch_of}
    assert len(sources) == 2
    assert set(sources.values()) == {f"{SESSION}6"}


def line(name: str, parent: str | None, text: str, **more: object) -> str:
    role = "assistant" if text.isupper() else "user"
    return json.dumps(
        {"type": role, "uuid": name, "parentUuid": parent, "timestamp": "2026-01-02T03:04:05Z"}
        | {"message": {"role": role, "id": f"msg_{name}", "content": text}}
        | more
    )


def write(folder: Path, *lines: str, end: str = "\n", age: int = 3600) -> Path:
    file = folder / "one.jsonl"
    file.write_bytes(("\n".join(lines) + end).encode("utf-8", "surrogatepass"))
    then = file.stat().st_mtime - age
    os.utime(file, (then, then))
    return file


def test_an_edited_prompt_leaves_a_branch(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        line("a", None, "one"),
        line("b", "a", "ONE"),
        line("c", "b", "two"),
        line("d", "c", "TWO"),
        line("e", "b", "two, edited"),
        line("f", "e", "EDITED"),
    )
    main, branch = read(file)
    assert [one.id for one in main.items] == ["a", "b", "e", "f"]
    assert [one.id for one in branch.items] == ["a", "b", "c", "d"]
    assert (main.id, main.branch_of) == ("one", None)
    assert (branch.id, branch.branch_of) == ("one#c", "one")


def test_damaged_lines_are_kept_as_events(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        line("a", "missing", "one\x00\ud800"),
        '{"type": "user", "uuid": "b", "mess',
        "\x00\x00\x00",
        line("c", "d", "TWO"),
        line("d", "c", "three"),
        line("d", "d", "three again"),
        end="",
    )
    file.write_bytes(file.read_bytes() + b"\n\xff\xfe half")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    (found,) = read(file)
    damaged = [one for one in found.items if isinstance(one, ForeignEvent)]
    assert [one.kind for one in damaged] == ["damaged"] * 3
    assert "half" in damaged[-1].payload
    assert len({one.id for one in found.items}) == len(found.items) == 7


def test_a_half_written_last_line_is_left_for_the_next_time(tmp_path: Path) -> None:
    file = write(tmp_path, line("a", None, "one"), '{"type": "assis', end="", age=0)
    (found,) = read(file)
    assert [one.id for one in found.items] == ["a"]
    assert found.is_growing


def test_a_home_is_found_only_with_sessions(tmp_path: Path) -> None:
    assert find_home(tmp_path) is None
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    assert find_home(tmp_path) == tmp_path / ".claude"
