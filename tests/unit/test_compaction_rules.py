"""The rules of compaction: where a context is cut, and when it is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelRequest,
    ToolReturnPart,
    UserPromptPart,
)

from clew.agent.compactor import estimate_size
from clew.core.compaction import (
    COOLDOWN_SECONDS,
    LARGE_CONTEXT,
    MAX_CRASHES,
    CompactionState,
    MessageSize,
    SummaryFault,
    crashed_repeatedly,
    find_last_user,
    find_summary_fault,
    find_tail_start,
    is_too_frequent,
    may_compact,
    record_attempt,
    record_failure,
    record_success,
)
from clew.core.side_answer import SideAnswer
from clew.features.titles.text import parse_title

CALLS = st.lists(st.sampled_from(["text", "calls", "user"]), max_size=12)


def _context(kinds: list[str], sizes: list[int]) -> list[MessageSize]:
    found: list[MessageSize] = []
    for number, (kind, tokens) in enumerate(zip(kinds, sizes, strict=False)):
        ids = frozenset({f"a{number}", f"b{number}"})
        if kind == "calls":
            found += [
                MessageSize(tokens=tokens, calls=ids),
                MessageSize(tokens=tokens, answers=ids),
            ]
        else:
            found.append(MessageSize(tokens=tokens, from_user=kind == "user"))
    return found


@given(kinds=CALLS, sizes=st.lists(st.integers(1, 50), min_size=12), keep=st.integers(0, 300))
def test_the_tail_is_as_long_as_it_may_be_and_divides_no_call_from_its_result(
    kinds: list[str], sizes: list[int], keep: int
) -> None:
    context = _context(kinds, sizes)
    tail = find_tail_start(context, keep=keep)
    assert 0 <= tail <= len(context)
    opened = [call for message in context[:tail] for call in message.calls]
    closed = [call for message in context[:tail] for call in message.answers]
    assert sorted(opened) == sorted(closed)
    kept = sum(message.tokens for message in context[tail:])
    shortest = 2 if context and context[-1].answers else 1
    assert kept <= keep or len(context) - tail <= shortest or tail == 0


def test_the_last_message_of_the_person_is_found_and_tools_do_not_count() -> None:
    said = MessageSize(tokens=1, from_user=True)
    assert find_last_user([said, said, MessageSize(tokens=1)]) == 1
    assert find_last_user([MessageSize(tokens=1)]) is None


def test_extra_content_of_a_tool_counts_as_no_persons_message() -> None:
    shown = UserPromptPart("a picture")
    assert estimate_size(ModelRequest(parts=[shown])).from_user
    assert not estimate_size(
        ModelRequest(parts=[ToolReturnPart("look", "seen", "c1"), shown])
    ).from_user


def test_an_attempt_counts_before_it_is_made_so_that_one_that_kills_is_not_made_for_ever() -> None:
    state = CompactionState()
    for attempt in range(MAX_CRASHES):
        assert not crashed_repeatedly(state), attempt
        state = record_attempt(state)
    assert crashed_repeatedly(state)
    put_off = record_failure(state, now=1000)
    assert not crashed_repeatedly(put_off)
    assert not may_compact(put_off, now=1000, turn_from=1)
    assert may_compact(put_off, now=1000 + int(COOLDOWN_SECONDS * 1000), turn_from=1)
    # The attempt after the cool-down is the last one again, unless it comes to something.
    assert crashed_repeatedly(record_attempt(put_off))
    assert not crashed_repeatedly(
        record_success(record_attempt(put_off), last_seq=9, before=100, after=10)
    )


def test_a_failure_that_ends_is_tried_again_after_each_cool_down() -> None:
    state = CompactionState()
    for attempt in range(5):
        assert not crashed_repeatedly(state), attempt
        state = record_failure(record_attempt(state), now=1000)


def test_a_faulty_summary_is_rejected_for_its_fault() -> None:
    headings = ("## Done",)

    def fault(summary: str, replaces: int = 100) -> SummaryFault | None:
        return find_summary_fault(summary, replaces=replaces, headings=headings)

    assert fault("  ") is SummaryFault.EMPTY
    assert fault("## Done\n" + "x" * 300) is SummaryFault.TOO_LONG
    assert fault("done") is SummaryFault.NO_HEADING
    assert fault("## Done\nit", LARGE_CONTEXT + 1) is SummaryFault.TOO_SHORT
    assert fault("## done\nit", LARGE_CONTEXT) is None


@pytest.mark.parametrize(
    ("fired", "often"),
    [
        ((), False),
        ((5, 9), False),
        ((5, 9, 13), True),
        ((5, 40, 60), False),
        ((1, 50, 54, 58), True),
    ],
)
def test_compactions_that_come_close_together_are_too_often(
    fired: tuple[int, ...], often: bool
) -> None:
    assert (
        is_too_frequent(CompactionState(fired=fired), last_seq=fired[-1] + 4 if fired else 4)
        is often
    )


def test_a_title_that_was_cut_off_is_none() -> None:
    cut = SideAnswer(text="How rivers", is_complete=False, model="m")
    whole = SideAnswer(text="How rivers grow", is_complete=True, model="m")
    assert (parse_title(cut), parse_title(whole)) == (None, "How rivers grow")
