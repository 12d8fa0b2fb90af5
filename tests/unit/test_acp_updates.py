"""Updates of an editor's session: streamed text, thoughts, changes of files."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from clew.acp.updates import UpdateTranslator
from clew.wire.event_models import (
    DeltaNotice,
    EntryNotice,
    RetractedNotice,
    SnapshotNotice,
    TurnBegunNotice,
    TurnClosedNotice,
)

if TYPE_CHECKING:
    from clew.wire.event_models import AnyNotice

_PLACE: dict[str, Any] = {"conversation": "cnv_1", "session": "s"}
_seqs = count(1)


def piece(text: str, *, thought: bool = False) -> DeltaNotice:
    kind = "thinking" if thought else "text"
    return DeltaNotice(type="delta", turn="t", kind=kind, text=text, seq=0, **_PLACE)


def response(text: str, *parts: dict[str, Any]) -> EntryNotice:
    said = {"part_kind": "text", "content": text}
    return EntryNotice(
        type="entry",
        kind="message",
        turn="t",
        role="assistant",
        text=text,
        message={"parts": [*parts, *([said] if text else [])]},
        created_at="",
        seq=next(_seqs),
        **_PLACE,
    )


def begun() -> TurnBegunNotice:
    return TurnBegunNotice(type="turn_begun", turn="t", seq=0, **_PLACE)


def told(*events: AnyNotice) -> list[tuple[str, str]]:
    """The kinds and texts of the updates; pieces of one kind are one text."""
    translator = UpdateTranslator(workspace="/work")
    found: list[tuple[str, str]] = []
    for event in events:
        for update in translator.translate(event):
            fields: Any = update.model_dump()
            kind, text = update.session_update, fields["content"]["text"]
            if found and found[-1][0] == kind:
                text = found.pop()[1] + text
            found.append((kind, text))
    return found


def test_text_that_was_streamed_is_not_told_again_with_its_entry() -> None:
    assert told(begun(), piece("Hel"), piece("lo"), response("Hello there")) == [
        ("agent_message_chunk", "Hello there")
    ]


def test_thoughts_are_told_once_and_apart_from_the_answer() -> None:
    thinking = {"part_kind": "thinking", "content": "Hm, well"}
    assert told(piece("Hm", thought=True), response("Yes", thinking)) == [
        ("agent_thought_chunk", "Hm, well"),
        ("agent_message_chunk", "Yes"),
    ]


def test_text_that_is_void_is_said_to_be_so() -> None:
    void = RetractedNotice(type="retracted", turn="t", reason="cut", seq=0, **_PLACE)
    again = "\n\n(interrupted; ignore the text above{})\n\n"
    assert told(piece("One"), void, piece("Two"), response("Two")) == [
        ("agent_message_chunk", f"One{again.format(': cut')}Two")
    ]
    # A new owner of the turn, another text so far, or an entry that differs.
    snapshot = SnapshotNotice(type="snapshot", turn="t", text="Two", seq=0, **_PLACE)
    for event in (begun(), snapshot):
        assert told(piece("One"), event, response("Two")) == [
            ("agent_message_chunk", f"One{again.format('')}Two")
        ]
    assert told(piece("One"), response("Two")) == [
        ("agent_message_chunk", f"One{again.format('')}Two")
    ]
    assert told(piece("T"), snapshot, response("Two")) == [("agent_message_chunk", "Two")]


def test_responses_of_one_turn_are_paragraphs_and_the_next_turn_starts_anew() -> None:
    closed = TurnClosedNotice(
        type="turn_closed", turn="t", outcome="answered", error=None, code=None, seq=0, **_PLACE
    )
    assert told(response("One"), piece("Two"), response("Two"), closed, response("Three")) == [
        ("agent_message_chunk", "One\n\nTwoThree")
    ]


def test_the_change_of_a_file_is_a_diff_at_its_place() -> None:
    translator = UpdateTranslator(workspace="/work")
    edit = {
        "part_kind": "tool-call",
        "tool_call_id": "c",
        "tool_name": "edit_file",
        "args": '{"path": "a/b.txt", "old": "one", "new": "two"}',
    }
    (update,) = translator.translate(response("", edit))
    fields: Any = update.model_dump(exclude_none=True)
    assert (fields["title"], fields["kind"], fields["status"]) == (
        "edit_file a/b.txt", "edit", "pending",
    )  # fmt: skip
    assert fields["content"] == [
        {"type": "diff", "path": "/work/a/b.txt", "old_text": "one", "new_text": "two"}
    ]
    assert fields["locations"] == [{"path": "/work/a/b.txt"}]
