"""Conversations in the terminal UI: sender, time, duration, tool results."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clew.tui.state import reducer
from clew.tui.state.labels import format_duration
from clew.tui.state.view import ToolCallView, ToolProgress, TurnTotals, ViewState
from clew.tui.text.diffs import extract_diff
from clew.tui.text.palette import Palette
from clew.tui.text.renderer import BlockRenderer
from clew.tui.widgets.transcript_layout import TranscriptLayout
from tests.unit.test_tui_view import CONVERSATION, STATE, after, begun, notice

BEGUN = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


def entry(seq: int, role: str, text: str, *, second: float, turn: str = "t", **message: Any) -> Any:
    at = (BEGUN + timedelta(seconds=second)).isoformat(timespec="milliseconds")
    parts = message.pop("parts", [{"part_kind": "text", "content": text}])
    return notice(
        "entry", seq, role=role, text=text, message={"parts": parts, **message}, kind="message",
        created_at=at.replace("+00:00", "Z"), turn=turn,
    )  # fmt: skip


CALL = {"part_kind": "tool-call", "tool_name": "look", "args": "{}", "tool_call_id": "c1"}


def talk() -> ViewState:
    return after(
        begun(),
        entry(1, "user", "hello", second=0, turn="other"),
        entry(2, "user", "look", second=60),
        entry(3, "assistant", "", second=61, parts=[CALL], usage={"output_tokens": 7}),
        entry(4, "assistant", "done", second=63.2, usage={"output_tokens": 5}, model_name="m"),
    )


def rows(view: ViewState, width: int = 80) -> list[str]:
    layout = TranscriptLayout(BlockRenderer(width, Palette()))
    layout.update_blocks(view.blocks, view.live)
    lines = [line for piece in layout.pieces for line in piece.lines]
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


def test_below_an_answer_stands_who_gave_it_how_long_it_took_and_how_many_tokens() -> None:
    view = talk()
    assert view.blocks[-1].totals == TurnTotals(model="m", tokens=12, seconds=3.2)
    assert [block.totals for block in view.blocks[:-1]] == [None] * 3
    said = (BEGUN + timedelta(seconds=60)).astimezone().strftime("%Y-%m-%d %H:%M")
    answered = (BEGUN + timedelta(seconds=63)).astimezone().strftime("%Y-%m-%d %H:%M")
    shown = rows(view)
    assert shown[1] == f"look{' ' * (80 - 24)}You {said}"
    assert shown[-2:] == ["done", f"Clew (m) · 3.2 s · 12 tokens · {answered}"]
    assert rows(view, 40)[1] == f"look{' ' * 31}{said[-5:]}"
    assert all(len(row) <= 40 for row in rows(view, 40))


def test_an_answer_whose_beginning_is_not_loaded_shows_no_time() -> None:
    view = reducer.open_conversation(
        ViewState(), CONVERSATION.model_copy(update={"entries": 3}), STATE
    )
    view = after(view, entry(4, "assistant", "done", second=9, usage={"output_tokens": 5}))
    assert view.blocks[-1].totals == TurnTotals(model="", tokens=5, seconds=None)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (45.4, "45 s"), (125, "2 min 5 s"), (3780, "1 h 3 min")],
)
def test_a_duration_is_shown_with_useful_precision(seconds: float, told: str) -> None:
    assert format_duration(seconds) == told


def tool(
    args: object = None, result: str = "", progress: ToolProgress = ToolProgress.DONE
) -> ToolCallView:
    text = json.dumps({} if args is None else args)
    return ToolCallView(call="c", name="edit", args=text, result=result, progress=progress)


UNIFIED = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"


@pytest.mark.parametrize(
    ("shown", "lines"),
    [
        (tool(result=UNIFIED), UNIFIED.splitlines()),
        (tool({"path": "x", "patch": UNIFIED}), UNIFIED.splitlines()),
        (tool({"path": "x", "old_string": "a\nb", "new_string": "a\nc"}), [" a", "-b", "+c"]),
        (tool({"old": "a", "new": "a"}), []),
        (tool({"old": "a"}, "- a list\n+ of things"), []),
        (tool([1]), []),
        (tool(result="plain"), []),
        (ToolCallView(call="c", name="x", args="no JSON"), []),
    ],
)
def test_a_diff_is_found_in_arguments_and_results(shown: ToolCallView, lines: list[str]) -> None:
    assert extract_diff(shown) == lines


def drawn(shown: ToolCallView, *, folded: bool = True) -> list[str]:
    block = talk().blocks[2]
    painter = BlockRenderer(60, Palette())
    lines = painter.render_block(replace(block, tool=shown), folded=folded)
    return ["".join(segment.text for segment in line) for line in lines]


def test_a_call_has_a_preview_of_its_result_and_a_diff_stands_open() -> None:
    assert drawn(tool({"a": 1}, "\nfirst\nsecond")) == ["✓ edit(a=1) ▸ 3 lines", "  └ first"]
    assert drawn(tool({"a": 1})) == ["✓ edit(a=1)"]
    args = {"old": "a\nb", "new": "a\nc"}
    head, *diff = drawn(tool(args))
    assert head.startswith("✓ edit(old=")
    assert diff == ["   a", "  -b", "  +c"]
    assert drawn(tool(args, "edited"), folded=False)[1:] == [*diff, "│ edited"]
    assert drawn(tool(result=UNIFIED), folded=False)[-2:] == ["  -two", "  +2"]
    many = {"old": "", "new": "\n".join(map(str, range(20)))}
    assert drawn(tool(many))[-1] == "  … 8 more lines"
    assert all(len(row) <= 60 for row in drawn(tool({"a": "x" * 200}, "y\n" * 9)))
