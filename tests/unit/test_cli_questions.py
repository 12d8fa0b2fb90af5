"""Lines that answer questions: only those that were typed for the question on the screen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from clew.cli.approval_prompt import ApprovalPrompt, LineMeaning, format_prompts
from clew.cli.typeahead import TypeaheadParser, TypedLine
from clew.core.approval import Approval, ApprovalState
from clew.core.grant import GrantPattern, GrantTerm
from clew.core.ids import ApprovalId, ConversationId, TurnId

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def question(number: int, args: str = "{}") -> Approval:
    return Approval(
        id=ApprovalId(f"apr_{number}"),
        conversation_id=ConversationId("cnv_1"),
        turn_id=TurnId("trn_1"),
        step=1,
        call_id=f"c{number}",
        tool=f"cut{number}",
        args=args,
        route=None,
        state=ApprovalState.OPEN,
        asked_at=NOON,
        expires_at=NOON,
        answered_by=None,
        note=None,
    )


def offered(number: int) -> Approval:
    return replace(question(number), offer=GrantPattern(tool="cut"), why="it reaches outside")


def line(text: str, *, by_hand: bool = True, fresh: bool = True) -> TypedLine:
    return TypedLine(text=text, by_hand=by_hand, fresh=fresh)


def asked(*numbers: int) -> ApprovalPrompt:
    """Questions that were just shown."""
    questions = ApprovalPrompt()
    assert questions.update([question(number) for number in numbers])
    questions.arm_answers()
    return questions


@pytest.mark.parametrize("text", ["y", "Y", " yes ", "YES", "/approve", "/approve 1"])
def test_an_exact_word_allows_the_first(text: str) -> None:
    answer = asked(1, 2).interpret_line(line(text))
    assert (answer.meaning, answer.yes) == (LineMeaning.ANSWER, True)
    assert [one.id for one in answer.approvals] == ["apr_1"]


@pytest.mark.parametrize("text", ["n", "no", "No", "/deny"])
def test_an_exact_word_refuses(text: str) -> None:
    answer = asked(1).interpret_line(line(text))
    assert (answer.meaning, answer.yes) == (LineMeaning.ANSWER, False)


@pytest.mark.parametrize(
    "text",
    [
        "actually, no, do not do that",
        "yes but not that one",
        "y n",
        "yy",
        "a y",
        "yes.",
        "ok",
        "",
        "sure",
        "nah",
        "all of them are wrong",
    ],
)
def test_anything_else_is_a_message_and_allows_nothing(text: str) -> None:
    questions = asked(1, 2)
    assert questions.interpret_line(line(text)).meaning is LineMeaning.MESSAGE
    assert len(questions.open) == 2
    assert questions.interpret_line(line("y")).meaning is LineMeaning.ANSWER


def test_all_are_those_that_were_shown() -> None:
    questions = asked(1, 2)
    assert questions.update([question(0), question(1), question(2), question(3)])
    answer = questions.interpret_line(line("a"))
    assert [one.id for one in answer.approvals] == ["apr_1", "apr_2"]
    assert [one.id for one in questions.open] == ["apr_0", "apr_3"]
    assert questions.interpret_line(line("a")).meaning is LineMeaning.STRAY


def test_input_typed_before_a_question_answers_nothing() -> None:
    questions = ApprovalPrompt()
    assert questions.interpret_line(line("y")).meaning is LineMeaning.MESSAGE
    questions.update([question(1)])
    assert questions.interpret_line(line("y")).meaning is LineMeaning.STRAY
    questions.arm_answers()
    assert questions.interpret_line(line("y", fresh=False)).meaning is LineMeaning.STRAY
    assert questions.interpret_line(line("y", by_hand=False)).meaning is LineMeaning.STRAY
    assert questions.interpret_line(line("y")).meaning is LineMeaning.ANSWER


def test_an_answer_given_twice_does_nothing_more() -> None:
    questions = asked(1, 2)
    questions.interpret_line(line("y"))
    assert questions.needs_display()
    assert questions.interpret_line(line("y")).meaning is LineMeaning.STRAY
    questions.arm_answers()
    assert [one.id for one in questions.interpret_line(line("y")).approvals] == ["apr_2"]
    assert questions.interpret_line(line("y")).meaning is LineMeaning.STRAY
    # A look at the store that was older than the answers changes nothing.
    assert not questions.update([question(1), question(2)])
    assert not questions.open
    questions.note_output()
    assert questions.interpret_line(line("y")).meaning is LineMeaning.MESSAGE


def test_a_question_that_closed_elsewhere_cannot_be_answered() -> None:
    questions = asked(1, 2)
    assert not questions.update([question(2)])
    assert [one.id for one in questions.interpret_line(line("y")).approvals] == ["apr_2"]


def test_every_argument_is_shown_to_the_letter() -> None:
    args = '{"cmd": "' + "red " * 120 + '  ; rm -rf ~\u202e\x1b[2J"}'
    first, *rest = format_prompts([question(1, args), question(2)])
    assert "red " * 120 + "  ; rm -rf ~\\u{202E}\\u{1B}[2J" in first
    assert first.startswith("? 1 of 2: cut1(")
    assert rest[0] == "? 2 of 2: cut2({})"
    assert "all 2" in rest[1]
    assert "allows all" not in format_prompts([question(1)])[1]


def test_a_line_that_was_begun_before_is_not_fresh() -> None:
    lines = TypeaheadParser()
    assert lines.feed_bytes(b"ye") == []
    lines.mark_boundary()
    assert lines.feed_bytes(b"s\ny\n") == [line("yes", fresh=False), line("y")]
    lines.mark_boundary()
    assert lines.feed_bytes(b"\x1b[200~y\x1b[201~\n") == [line("y", by_hand=False)]


@pytest.mark.parametrize(
    ("text", "keep"), [("hour", GrantTerm.HOUR), ("Always", GrantTerm.ALWAYS), ("y", None)]
)
def test_an_answer_holds_for_longer_only_where_that_was_offered(
    text: str, keep: GrantTerm | None
) -> None:
    shown = format_prompts([offered(1)])
    assert shown[1:3] == [
        "  (asked because it reaches outside)",
        "(hour allows it for an hour here, always for good, and whatever is alike: cut: any call)",
    ]
    questions = ApprovalPrompt()
    questions.update([offered(1), question(2)])
    questions.arm_answers()
    answer = questions.interpret_line(line(text))
    assert (answer.meaning, answer.yes, answer.keep) == (LineMeaning.ANSWER, True, keep)
    questions.arm_answers()
    if keep is not None:
        assert questions.interpret_line(line(text)).meaning is LineMeaning.STRAY


@pytest.mark.parametrize("text", ["n because it is late", "No, because: it is late"])
def test_a_reason_behind_no_is_reported(text: str) -> None:
    answer = asked(1).interpret_line(line(text))
    assert (answer.meaning, answer.yes, answer.note) == (LineMeaning.ANSWER, False, "it is late")
