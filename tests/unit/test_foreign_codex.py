"""Sessions of Codex are read whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

from clew.core.entry import Role
from clew.foreign.conversations import (
    ForeignCompaction,
    ForeignConversation,
    ForeignEvent,
    ForeignMessage,
)
from clew.foreign.readers.codex import find_home, open_home

SAMPLE = Path(__file__).parents[1] / "foreign" / "samples" / "codex"


def read(path: Path) -> list[ForeignConversation]:
    found = list(open_home(path).iter_conversations())
    return [one for one in found if isinstance(one, ForeignConversation)]


def messages(conversation: ForeignConversation, role: Role) -> list[ForeignMessage]:
    return [
        one for one in conversation.items if isinstance(one, ForeignMessage) and one.role is role
    ]


def test_every_line_is_a_part_of_a_message_a_compaction_or_an_event() -> None:
    conversations = read(SAMPLE)
    assert len(conversations) == 4
    for conversation in conversations:
        (file,) = SAMPLE.rglob(f"*{conversation.id}.jsonl")
        lines = [json.loads(one) for one in file.read_text(encoding="utf-8").splitlines()]
        inner = [one["payload"].get("type") for one in lines if one["type"] == "response_item"]
        said = [
            one["payload"].get("type")
            for one in lines
            if one["type"] == "response_item" and one["payload"].get("role") != "assistant"
        ]
        calls = [call for one in messages(conversation, Role.ASSISTANT) for call in one.calls]
        results = [one for message in messages(conversation, Role.TOOL) for one in message.results]
        assert len(calls) == inner.count("function_call")
        assert len(results) == inner.count("function_call_output")
        assert {one.call_id for one in results} <= {one.id for one in calls}
        answers = [one for one in messages(conversation, Role.ASSISTANT) if one.text]
        assert len(answers) == len(inner) - len(said)
        others = [one for one in conversation.items if not isinstance(one, ForeignMessage)]
        prompts = messages(conversation, Role.USER)
        kinds = ("function_call", "function_call_output", "reasoning")
        outside = sum(1 for one in lines if one["type"] != "response_item")
        assert len(others) + len(prompts) == outside + sum(1 for one in said if one not in kinds)


def test_a_reading_is_the_same_as_the_one_before() -> None:
    assert read(SAMPLE) == read(SAMPLE)


def test_compactions_stay_in_the_conversation_with_their_summaries() -> None:
    found = [item for one in read(SAMPLE) for item in one.items]
    compactions = [one for one in found if isinstance(one, ForeignCompaction)]
    assert len(compactions) == 2
    assert all(one.summary for one in compactions)


def test_the_tokens_of_a_request_are_those_of_its_answer() -> None:
    answers = [item for one in read(SAMPLE) for item in messages(one, Role.ASSISTANT)]
    used = [one.usage for one in answers if one.usage is not None]
    assert {(one.input_tokens, one.cached_tokens) for one in used} == {(1200, 600)}


def test_damaged_lines_are_events_and_old_sessions_are_read(tmp_path: Path) -> None:
    file = tmp_path / "rollout-old.jsonl"
    lines = [
        b'{"id": "old", "timestamp": "2025-05-01T00:00:00Z", "instructions": null}',
        b'{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}',
        b"\x00\xff half",
        b'{"type": "message", "role": "assistant", "content": [{"text": "Hello \\ud800"}]}',
        b'{"type": "never-seen", "n": 1}',
        b'{"type": "mess',
    ]
    file.write_bytes(b"\n".join(lines))
    (growing,) = read(file)
    assert len(growing.items) == 5
    assert growing.is_growing
    os.utime(file, (1_700_000_000, 1_700_000_000))
    (found,) = read(file)
    assert found.id == "old"
    events = [one.kind for one in found.items if isinstance(one, ForeignEvent)]
    assert events == ["session_meta", "damaged", "never-seen", "damaged"]
    assert [one.text[:5] for one in messages(found, Role.ASSISTANT)] == ["Hello"]


def test_a_home_is_found_only_with_sessions(tmp_path: Path) -> None:
    assert find_home(tmp_path) is None
    (tmp_path / ".codex" / "sessions").mkdir(parents=True)
    assert find_home(tmp_path) == tmp_path / ".codex"
