"""The view of the terminal UI: what each event makes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from clew.tui.state import reducer
from clew.tui.state.input_history import (
    InputHistory,
    find_file_mentions,
    parse_history,
    serialize_text,
    strip_file_lines,
)
from clew.tui.state.labels import context_gauge, status_text
from clew.tui.state.view import BlockKind, LinkState, ToolProgress, ViewState
from clew.tui.text.markdown_blocks import split_blocks
from clew.tui.text.palette import Palette
from clew.tui.text.renderer import BlockRenderer
from clew.tui.widgets.transcript_layout import BATCH_SIZE, TranscriptLayout
from clew.wire.event_models import AnyNotice, parse_notice
from clew.wire.models import (
    ConversationShape,
    EntryShape,
    SpanShape,
    StateShape,
    UsageShape,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

CONVERSATION = ConversationShape(
    id="cnv_1",
    title=None,
    head_session="ses_1",
    scope="local",
    entries=0,
    created_at="",
    updated_at="",
    routes=["agent:main:local:talk"],
    origin=None,
    sessions=[],
)
STATE = StateShape(
    title=None,
    head_session="ses_1",
    closed=False,
    model="offline",
    turn=None,
    queue=[],
    approvals=[],
    taken_back=[],
)


def begun(entries: int = 0) -> ViewState:
    shape = CONVERSATION.model_copy(update={"entries": entries})
    return reducer.open_conversation(ViewState(), shape, STATE)


def notice(type_: str, seq: int = 0, **fields: Any) -> AnyNotice:
    common = {"conversation": "cnv_1", "session": "ses_1", "seq": seq, "type": type_}
    found = parse_notice({**common, "turn": "trn_1", **fields})
    assert found is not None
    return found


def entry(
    seq: int, role: str, text: str = "", *, parts: Sequence[object] = (), kind: str = "message"
) -> AnyNotice:
    message = {"parts": list(parts)}
    return notice("entry", seq, role=role, text=text, message=message, kind=kind, created_at="")


def said(seq: int, text: str = "hello") -> AnyNotice:
    return entry(seq, "user", text)


CALL = {"part_kind": "tool-call", "tool_name": "look", "args": "{}", "tool_call_id": "c1"}
RETURN = {"part_kind": "tool-return", "content": "seen", "tool_call_id": "c1"}


def after(view: ViewState, *notices: AnyNotice) -> ViewState:
    for each in notices:
        view = reducer.apply_event(view, each)
    return view


def texts(view: ViewState) -> list[str]:
    return [block.text for block in view.blocks]


def test_a_repeated_entry_changes_nothing() -> None:
    view = after(begun(), said(1, "a"), said(2, "b"))
    assert after(view, said(1, "a"), said(2, "b")) is view
    assert texts(view) == ["a", "b"]


def test_a_missing_entry_is_noticed_and_nothing_behind_it_is_shown() -> None:
    view = after(begun(), said(1, "a"), said(3, "c"))
    assert view.gap
    assert (texts(view), view.seq) == (["a"], 1)
    assert texts(after(reducer.reset_live(view), said(2, "b"), said(3, "c"))) == ["a", "b", "c"]


@given(st.lists(st.integers(1, 12), max_size=40))
def test_repeated_events_still_give_each_entry_once_and_in_order(seqs: list[int]) -> None:
    view = begun()
    for seq in seqs:
        view = after(view, said(seq, str(seq)))
        if view.gap:
            view = after(reducer.reset_live(view), *(said(n, str(n)) for n in range(1, seq + 1)))
        assert texts(view) == [str(n) for n in range(1, view.seq + 1)]


def test_an_event_of_another_conversation_is_left_out() -> None:
    view = begun()
    other = said(1).model_copy(update={"conversation": "cnv_2"})
    assert after(view, other) is view


def test_pieces_make_a_response_that_its_entry_replaces() -> None:
    pieces = [notice("delta", kind="text", text=text) for text in ("Hel", "lo")]
    view = after(begun(), said(1), *pieces, notice("delta", kind="thinking", text="hm"))
    assert (view.live.text, view.live.thinking) == ("Hello", "hm")
    text = {"part_kind": "text", "content": "Hello"}
    view = after(view, entry(2, "assistant", "Hello", parts=[text]))
    assert view.live.text == ""
    assert texts(view) == ["hello", "Hello"]


def test_a_snapshot_stands_for_all_pieces_and_a_retraction_voids_them() -> None:
    view = after(begun(), notice("delta", kind="text", text="xx"), notice("snapshot", text="yy"))
    assert view.live.text == "yy"
    assert after(view, notice("retracted", reason="again")).live.text == ""


def test_a_call_is_asked_runs_and_has_its_result_in_any_order_of_events() -> None:
    asked = after(begun(), entry(1, "assistant", parts=[CALL]))
    [block] = asked.blocks
    assert block.tool is not None
    assert (block.kind, block.tool.progress) == (BlockKind.TOOL, ToolProgress.ASKED)
    running = notice("tool", 1, call="c1", tool="look", args="{}", status=None)
    done = notice("tool", 1, call="c1", tool="look", args="{}", status="ok")
    result = entry(2, "tool", parts=[RETURN])
    for order in ([running, done, result], [running, result, done], [result, running]):
        [block] = after(asked, *order).blocks
        assert block.tool is not None
        assert (block.tool.progress, block.tool.result) == (ToolProgress.DONE, "seen")


def test_entries_from_before_stand_before_and_calls_find_their_results() -> None:
    view = after(begun(2), said(3))
    shapes = [
        EntryShape.model_validate(each.model_dump(exclude={"conversation", "type"}))
        for each in (entry(1, "assistant", parts=[CALL]), entry(2, "tool", parts=[RETURN]))
    ]
    assert view.first == 3
    half = reducer.prepend_entries(view, "cnv_1", shapes[1:], before=3)
    assert (half.first, len(half.strays)) == (2, 1)
    view = reducer.prepend_entries(half, "cnv_1", shapes[:1], before=2)
    assert view.first == 1
    assert view.blocks[0].tool is not None
    assert view.blocks[0].tool.result == "seen"
    assert reducer.prepend_entries(half, "cnv_1", [], before=2).first == 1
    for conversation, before in (("cnv_2", 3), ("cnv_1", 4)):
        assert reducer.prepend_entries(view, conversation, shapes, before=before) is view


def test_a_lost_connection_keeps_what_is_stored_and_drops_what_was_provisional() -> None:
    view = after(begun(), said(1), notice("delta", kind="text", text="x"))
    gone = reducer.mark_disconnected(view, "gone")
    assert (gone.link, gone.live.text, texts(gone)) == (LinkState.LOST, "", ["hello"])
    assert status_text(gone) == "gone"
    back = reducer.open_conversation(gone, CONVERSATION.model_copy(update={"entries": 5}), STATE)
    assert (back.link, back.seq, texts(back)) == (LinkState.UP, 1, ["hello"])


def test_another_conversation_begins_at_its_end() -> None:
    other = CONVERSATION.model_copy(update={"id": "cnv_2", "entries": 9})
    view = reducer.open_conversation(after(begun(), said(1)), other, STATE)
    assert (view.blocks, view.first, view.seq) == ((), 10, 9)


def test_failures_and_notices_are_shown() -> None:
    failed = notice("turn_closed", 1, outcome="failed", error="no credit", code="quota")
    view = after(begun(), entry(1, "user", "a notice", kind="event"), failed)
    assert view.blocks[0].kind is BlockKind.NOTE
    assert status_text(view) == "no credit"
    assert status_text(after(view, notice("deleted"))).startswith("this conversation was deleted")


def test_the_gauge_says_how_full_it_is_and_what_it_cost() -> None:
    usage = UsageShape(
        input_tokens=1,
        cached_tokens=0,
        output_tokens=1,
        cost=0.123,
        context_tokens=5000,
        context_window=10_000,
    )
    assert context_gauge(usage) == "▰▰▰▰▰▱▱▱▱▱ 50% of 10k  $0.12"
    plain = usage.model_copy(update={"context_window": None, "cost": None})
    assert context_gauge(plain) == "5k tokens"
    assert context_gauge(None) == ""


def test_the_history_goes_back_and_forth_and_keeps_what_was_being_written() -> None:
    history = InputHistory().append_text("one").append_text("two").append_text("two")
    history, text = history.previous_text("draft")
    assert text == "two"
    history, text = history.previous_text(text)
    history, text = history.previous_text(text)
    assert text == "one"
    history, text = history.next_text(text)
    history, text = history.next_text(text)
    assert text == "draft"
    lines = "\n".join([serialize_text("a\nb"), "no JSON", "1", serialize_text("c")])
    assert parse_history(lines).texts == ("a\nb", "c")


def test_files_are_named_behind_an_at_sign_that_begins_a_word() -> None:
    assert find_file_mentions('look at @a.png and @"b c.txt", not x@y.z') == ["a.png", "b c.txt"]
    stored = "look at @a.png\n[file att_1: a.png, image/png, 9 bytes]\n[file att_2: b.txt, gone]"
    assert strip_file_lines(stored) == "look at @a.png"
    assert strip_file_lines("what is\n[file this]\n?") == "what is\n[file this]\n?"


MARKDOWN = "# T\n\none\ntwo\n\n- a\n\n- b\n\n  more\n\n```py\nx\n\ny\n```\n\n1. x\n\n2. y\n\nend"


@given(st.text(alphabet="a `-1.\n#>|~", max_size=200))
def test_pieces_of_markdown_joined_are_the_text(text: str) -> None:
    assert "".join(split_blocks(text)) == text


def test_code_and_lists_are_not_cut() -> None:
    assert [piece.strip() for piece in split_blocks(MARKDOWN)] == [
        "# T",
        "one\ntwo\n\n- a\n\n- b\n\n  more",
        "```py\nx\n\ny\n```\n\n1. x\n\n2. y",
        "end",
    ]


def drawn(layout: TranscriptLayout) -> list[str]:
    return [
        "".join(segment.text for segment in line).strip()
        for piece in layout.pieces
        for line in piece.lines
    ]


def test_while_it_is_made_a_response_looks_as_it_will_when_it_is_stored() -> None:
    layout = TranscriptLayout(BlockRenderer(60, Palette()))
    for end in range(0, len(MARKDOWN), 7):
        layout.update_blocks((), replace(begun().live, turn="t", text=MARKDOWN[:end]))
    layout.update_blocks((), replace(begun().live, turn="t", text=MARKDOWN))
    live = drawn(layout)
    part = {"part_kind": "text", "content": MARKDOWN}
    layout.update_blocks(
        after(begun(), entry(1, "assistant", MARKDOWN, parts=[part])).blocks, begun().live
    )
    assert drawn(layout) == live


def test_only_the_end_of_a_long_conversation_is_drawn_and_the_rest_on_the_way_back() -> None:
    view = after(begun(), *(said(n, f"line {n}") for n in range(1, 101)))
    layout = TranscriptLayout(BlockRenderer(40, Palette()))
    layout.update_blocks(view.blocks, view.live)
    assert (len(layout.pieces), layout.stored_count) == (BATCH_SIZE, BATCH_SIZE)
    height = layout.height
    assert layout.render_earlier() == layout.height - height > 0
    while not layout.is_complete:
        layout.render_earlier()
    assert drawn(layout) == [f"line {n}" for n in range(1, 101)]
    assert [layout.piece_at(piece.top) for piece in layout.pieces] == list(range(100))
    longer = after(view, said(101, "line 101"))
    changed = layout.update_blocks(longer.blocks, longer.live)
    assert changed == layout.pieces[99].end
    layout.rerender(BlockRenderer(20, Palette()))
    assert len(layout.pieces) == BATCH_SIZE


def test_a_call_is_opened_and_closed_and_nothing_in_it_steers_the_terminal() -> None:
    bad = {**RETURN, "content": "a\x1b[2Jb\nline 2"}
    view = after(begun(), entry(1, "assistant", parts=[CALL]), entry(2, "tool", parts=[bad]))
    layout = TranscriptLayout(BlockRenderer(60, Palette()))
    layout.update_blocks(view.blocks, view.live)
    assert drawn(layout) == ["✓ look() ▸ 2 lines", "└ a[2Jb"]
    layout.toggle_block(0)
    assert drawn(layout)[1:] == ["│ a[2Jb", "│ line 2"]
    layout.toggle_all()
    assert len(drawn(layout)) == 2


def test_a_rewound_exchange_is_one_pale_line_until_it_is_opened() -> None:
    back = STATE.model_copy(update={"taken_back": [SpanShape(first=2, last=3)]})
    view = after(begun(), said(1), said(2), notice("state", state=back))
    assert [block.taken for block in view.blocks] == [False, True]
    # Also for what comes later, and for what is loaded from before.
    view = after(view, said(3), said(4))
    assert [block.taken for block in view.blocks] == [False, True, True, False]
    layout = TranscriptLayout(BlockRenderer(40, Palette()))
    layout.update_blocks(view.blocks, view.live)
    drawn = ["".join(part.text for part in piece.lines[0]) for piece in layout.pieces]
    assert drawn == ["hello", "taken back ▸ hello", "taken back ▸ hello", "hello"]
    layout.toggle_block(1)
    assert ["".join(part.text for part in line) for line in layout.pieces[1].lines] == [
        "taken back ▾ hello",
        "│ hello",
    ]
    # The person goes forward again.
    view = after(view, notice("state", state=STATE))
    assert not any(block.taken for block in view.blocks)
