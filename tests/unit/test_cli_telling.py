"""Output for an input: each text once, with remarks beside it."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from clew.cli.event_printer import EventPrinter, is_success
from clew.cli.output import Output
from clew.core.entry import GENESIS, Entry, EntryKind, Role
from clew.core.events import (
    Delta,
    DeltaKind,
    EntryAppended,
    InputCompleted,
    Retracted,
    ToolCalled,
    TurnStarted,
)
from clew.core.ids import ConversationId, EntryId, InboxId, SessionId, TurnId
from clew.core.inbox import InboxOutcome
from clew.core.turn import Turn, TurnOutcome, TurnState

if TYPE_CHECKING:
    from clew.cli.chat_client import InputEvent

CONVERSATION, SESSION, TURN = ConversationId("cnv_1"), SessionId("s"), TurnId("trn_1")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def told(*events: InputEvent) -> tuple[str, str]:
    """Return the output on both streams."""
    out, notes = io.StringIO(), io.StringIO()
    teller = EventPrinter(Output(out), Output(notes))
    for event in events:
        teller.print_event(event)
    return out.getvalue(), notes.getvalue()


def piece(text: str, kind: DeltaKind = DeltaKind.TEXT) -> Delta:
    return Delta(conversation=CONVERSATION, turn=TURN, after=1, kind=kind, text=text)


def turn(outcome: TurnOutcome | None = TurnOutcome.ANSWERED) -> Turn:
    return Turn(
        id=TURN,
        conversation_id=CONVERSATION,
        state=TurnState.RUNNING if outcome is None else TurnState.DONE,
        outcome=outcome,
        error=None,
        error_code=None,
        stop=None,
        first_seq=1,
        steps=1,
        resumes=0,
        retries={},
        model=None,
        started_at=NOON,
        finished_at=None,
    )


def end(
    text: str = "",
    *,
    of: Turn | None = None,
    outcome: InboxOutcome = InboxOutcome.TURN,
    note: str | None = None,
) -> InputCompleted:
    return InputCompleted(
        inbox_id=InboxId("inb_1"),
        conversation=CONVERSATION,
        session=SESSION,
        outcome=outcome,
        turn=of,
        text=text,
        note=note,
    )


def answered(text: str) -> InputCompleted:
    return end(text, of=turn())


def stored(text: str, *, calls: tuple[str, ...] = ()) -> EntryAppended:
    return EntryAppended(
        entry=Entry(
            conversation_id=CONVERSATION,
            seq=2,
            id=EntryId("ent_1"),
            session_id=SESSION,
            turn_id=TURN,
            kind=EntryKind.MESSAGE,
            role=Role.ASSISTANT,
            text=text,
            calls=calls,
            answers=(),
            format="",
            message="null",
            created_at=NOON,
            prev_hash=GENESIS,
            hash=GENESIS,
        )
    )


def call(status: str | None = None) -> ToolCalled:
    return ToolCalled(
        conversation=CONVERSATION,
        turn=TURN,
        call_id="c",
        tool="look",
        args='{"where": "here"}',
        status=status,
    )


@pytest.mark.parametrize(
    "pieces", [[], ["the "], ["the ", "answer"], ["swer"], ["the answer", "!"]], ids=repr
)
def test_the_answer_stands_there_in_the_end_whatever_was_streamed(pieces: list[str]) -> None:
    out, notes = told(*map(piece, pieces), answered("the answer"))
    assert out.endswith("the answer\n")
    assert out.count("the answer\n") == 1
    assert notes == ""


def test_text_beside_tool_calls_is_printed_once_and_calls_are_remarks() -> None:
    out, notes = told(
        TurnStarted(turn=turn(None), session=SESSION),
        piece("I loo"),
        piece("k."),
        stored("I look.", calls=("c",)),
        call(),
        call("ok"),
        call("denied"),
        answered("Nothing here."),
    )
    assert out == "I look.\nNothing here.\n"
    assert notes == '· look({"where": "here"})\n✗ look was refused and did not run\n'


def test_an_answer_sent_as_an_entry_is_not_sent_again() -> None:
    assert told(piece("the "), stored("the answer"), answered("the answer"))[0] == "the answer\n"


def test_a_second_answer_like_the_first_is_reported_too() -> None:
    out, _ = told(stored("yes", calls=("c",)), call(), answered("yes"))
    assert out == "yes\nyes\n"


def test_text_that_was_taken_back_is_said_to_be_void() -> None:
    reason = Retracted(conversation=CONVERSATION, turn=TURN, after=1, reason="500\nserver error")
    out, notes = told(piece("half an ans"), reason, piece("whole"), answered("whole"))
    assert out == "half an ans\nwhole\n"
    assert notes == "(interrupted; ignore the text above: 500 server error)\n"
    assert told(reason, answered("whole")) == ("whole\n", "(no answer yet: 500 server error)\n")


def test_a_failure_is_a_remark_and_no_answer() -> None:
    failed = end("That failed: 401.", of=turn(TurnOutcome.FAILED))
    assert told(piece("half"), failed) == ("half\n", "That failed: 401.\n")
    assert not is_success(failed)


def test_an_answer_that_was_stopped_ends_in_a_remark() -> None:
    stopped = end(of=turn(TurnOutcome.CANCELLED))
    assert told(piece("half"), stopped) == ("half\n", "(stopped)\n")
    assert not is_success(stopped)


def test_an_input_without_a_turn_is_described_by_its_outcome() -> None:
    done = end(outcome=InboxOutcome.EXECUTED, note="renamed")
    back = end(outcome=InboxOutcome.CANCELLED, note="taken back")
    assert told(done) == ("renamed\n", "")
    assert told(back) == ("", "(cancelled: taken back)\n")
    assert [is_success(done), is_success(back), is_success(answered("x"))] == [True, False, True]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("denied", "refused and did not run"),
        ("cancelled", "cancelled"),
        ("error", "failed"),
        ("unknown", "may or may not"),
        ("something new", "something new"),
    ],
)
def test_a_call_that_did_not_do_its_work_does_not_look_done(status: str, said: str) -> None:
    _, notes = told(call(), call(status))
    assert notes.splitlines()[1].startswith("✗ look")
    assert said in notes


def test_thinking_is_shown_as_a_remark_on_a_terminal_only() -> None:
    assert told(piece("hm", DeltaKind.THINKING), answered("x")) == ("x\n", "")
