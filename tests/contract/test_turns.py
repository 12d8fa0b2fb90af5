"""3.6, 3.8, 3.9 and 3.10: turns, and what becomes of inputs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clew.core.delivery import DeliveryKind, DeliveryState, NewDelivery
from clew.core.double_text import DoubleText
from clew.core.ids import (
    ApprovalId,
    ConversationId,
    DeliveryId,
    InboxId,
    OwnerId,
    TurnId,
    new_session_id,
)
from clew.core.inbox import InboxKind, InboxOutcome, NewInput
from clew.core.journal import CallKey
from clew.core.turn import MAX_RESUMES, StartMode, StopRequest, TurnOutcome, TurnState
from clew.errors import InvalidTransition, StoreError, TurnRolledBack
from clew.store.transactions import (
    approvals,
    context,
    conversations,
    deliveries,
    inbox,
    leases,
    rewinds,
    sessions,
    turn_queries,
    turns,
)
from clew.store.transactions import due_work as work_of
from tests.contract import acting
from tests.contract.acting import MAIN, ME, OTHER, message, started

if TYPE_CHECKING:
    from clew.core.inbox import InboxItem
    from clew.core.turn import Turn
    from clew.store.contract import Tx
    from tests.contract.desk import Desk

C1, T1 = ConversationId("cnv_1"), TurnId("trn_1")
CALL = CallKey(turn_id=T1, step=1, call_id="call_1")


def _outcome(desk: Desk, name: str) -> InboxOutcome | None:
    return desk.do(inbox.get_item, InboxId(name)).outcome


def _begin(desk: Desk, turn: str = "trn_2") -> turns.StartedWork | None:
    return desk.do(
        turns.begin_work, C1, owner=ME, turn=TurnId(turn), compose=acting.compose,
        session_ids=new_session_id,
    )  # fmt: skip


def _finish(desk: Desk, begun: turns.StartedWork, *names: str) -> Turn:
    assert begun.turn is not None
    drafts = [acting.draft(name) for name in names]
    session = desk.do(acting.head).id
    return desk.do(
        turns.finish_turn, begun.lease, session, begun.turn.id, TurnOutcome.ANSWERED, drafts=drafts
    )


def test_a_message_is_consumed_and_said_in_one_commit(desk: Desk) -> None:
    """3.8"""
    begun = started(desk)
    assert begun.turn is not None
    assert begun.turn.first_seq == 1
    assert _outcome(desk, "inb_1") is InboxOutcome.TURN
    assert [m.message for m in desk.do(context.read_head_context, C1).messages] == ['"inb_1"']


def test_an_item_that_was_consumed_cannot_be_consumed_again(desk: Desk) -> None:
    """3.9: the transaction that tries it leaves nothing behind."""
    lease = started(desk).lease
    item = desk.do(inbox.get_item, InboxId("inb_1"))
    before = desk.snapshot()
    with pytest.raises(StoreError):
        desk.do(_say_again, lease, item)
    assert desk.snapshot() == before


def _say_again(t: Tx, lease: acting.Lease, item: InboxItem) -> None:
    acting.append(t, lease, "ent_again")
    turns.consume_item(t, item, InboxOutcome.STEERED, T1, step=1)


def test_a_burst_is_merged_into_one_turn(desk: Desk) -> None:
    """3.9"""
    desk.world.alive.add(ME)
    for name in ("inb_1", "inb_2", "inb_3"):
        desk.do(acting.accept, message(name, DoubleText.COLLECT))
    assert _begin(desk) is None
    desk.world.now += 600
    assert _begin(desk) is not None
    outcomes = [_outcome(desk, name) for name in ("inb_1", "inb_2", "inb_3")]
    assert outcomes == [InboxOutcome.TURN, InboxOutcome.MERGED, InboxOutcome.MERGED]


def test_an_item_stored_before_the_clock_went_back_is_due_at_once(desk: Desk) -> None:
    desk.world.alive.add(ME)
    desk.do(acting.accept, message("inb_1", DoubleText.COLLECT))
    new = NewDelivery(
        id=DeliveryId("dlv_1"), route=MAIN.key, kind=DeliveryKind.ANSWER, body='{"text": "a"}'
    )
    desk.do(deliveries.add_delivery, C1, new)
    desk.world.now -= 3 * 3600 * 1000
    assert desk.do(work_of.find_due_work, me=ME) == {C1: 0}
    assert _begin(desk) is not None
    desk.do(acting.accept, message("inb_2", DoubleText.COLLECT))
    assert desk.do(work_of.get_due_delay, C1, me=ME, duration=timedelta(seconds=15)) is not None
    assert desk.do(deliveries.claim_next_delivery, MAIN.key, owner=ME, claim="op_1") is not None


def test_a_message_that_steers_joins_at_a_step(desk: Desk) -> None:
    """3.9"""
    begun = started(desk)
    desk.do(acting.accept, message("inb_2", DoubleText.STEER))
    session = desk.do(acting.head).id
    for _ in range(2):  # the second time the answer had been lost
        steered = desk.do(
            turns.steer_turn, begun.lease, session, T1, step=1, after=1, compose=acting.compose
        )
        assert [entry.id for entry in steered] == ["ent_inb_2"]
    item = desk.do(inbox.get_item, InboxId("inb_2"))
    assert (item.outcome, item.turn_id, item.step) == (InboxOutcome.STEERED, T1, 1)


def test_a_turn_that_is_taken_back_cannot_be_answered(desk: Desk) -> None:
    """3.9: the message that takes it back is answered instead, as if the turn had not been."""
    begun = started(desk)
    desk.do(acting.accept, message("inb_2", DoubleText.ROLLBACK))
    with pytest.raises(TurnRolledBack):
        _finish(desk, begun, "ent_1")
    assert begun.turn is not None
    session = desk.do(acting.head).id
    done = desk.do(
        rewinds.roll_back_turn,
        begun.lease,
        session,
        begun.turn,
        drafts=[],
        session_ids=new_session_id,
    )
    assert done.outcome is TurnOutcome.CANCELLED
    assert _begin(desk) is not None
    said = [m.message for m in desk.do(context.read_head_context, C1).messages]
    assert said == ['"inb_2"']


def test_a_message_that_is_refused_is_not_said(desk: Desk) -> None:
    """3.9"""
    started(desk)
    refused = desk.do(acting.accept, message("inb_2", DoubleText.REJECT))
    assert refused.outcome is InboxOutcome.REJECTED
    assert desk.do(inbox.list_open_items, C1) == []


@pytest.mark.parametrize(
    ("rule", "stop"),
    [(DoubleText.INTERRUPT, StopRequest.INTERRUPT), (DoubleText.ROLLBACK, StopRequest.ROLLBACK)],
)
def test_a_message_that_interrupts_asks_the_turn_to_stop(
    desk: Desk, rule: DoubleText, stop: StopRequest
) -> None:
    started(desk)
    desk.do(acting.accept, message("inb_2", rule))
    assert desk.do(turn_queries.get_turn, T1).stop is stop


def test_a_command_waits_for_the_turn_before_it(desk: Desk) -> None:
    begun = started(desk)
    command = NewInput(
        id=InboxId("inb_2"), kind=InboxKind.COMMAND, text="x", double_text=DoubleText.QUEUE
    )
    desk.do(acting.accept, command)
    desk.do(acting.accept, message("inb_3"))
    _finish(desk, begun, "ent_1")
    after = _begin(desk)
    assert after is not None
    assert (after.turn, after.item) == (None, desk.do(inbox.get_item, command.id))
    assert desk.do(inbox.mark_executed, command.id, note="done")
    last = _begin(desk)
    assert last is not None
    assert last.turn is not None


def test_a_turn_that_waits_keeps_its_place_before_what_is_queued(desk: Desk) -> None:
    """3.6"""
    _wait(desk)
    desk.do(acting.accept, message("inb_2"))
    assert _begin(desk) is None
    assert desk.do(work_of.find_due_work, me=ME) == {}
    assert desk.do(work_of.find_next_work, C1) is None
    assert desk.do(leases.acquire_lease, C1, owner=OTHER).lost_owner is None


def _wait(desk: Desk) -> None:
    lease = started(desk).lease
    desk.do(
        approvals.request_approval, lease, CALL, approval=ApprovalId("apr_1"), tool="t", args="{}",
        route=None, expires_in=timedelta(minutes=1),
    )  # fmt: skip
    assert desk.do(turns.suspend_turn, lease, T1).state is TurnState.WAITING


def test_a_steering_message_ends_a_wait_in_every_process(desk: Desk) -> None:
    _wait(desk)
    desk.do(acting.accept, message("inb_2", DoubleText.STEER))
    assert desk.do(work_of.find_due_work, me=OTHER) == {C1: desk.world.now}
    begun = _begin(desk)
    assert begun is not None
    assert begun.turn is not None
    assert (begun.turn.id, begun.turn.state) == (T1, TurnState.RUNNING)
    assert desk.do(approvals.list_open_approvals, C1) == []


def test_a_stop_ends_a_wait(desk: Desk) -> None:
    _wait(desk)
    assert desk.do(turn_queries.request_stop, T1, StopRequest.STOP)
    assert C1 in desk.do(work_of.find_due_work, me=OTHER)
    assert _begin(desk) is not None


def test_resumes_are_counted_where_an_owner_was_lost_and_nothing_was_said_since(
    desk: Desk,
) -> None:
    begun = started(desk)
    for count in range(1, MAX_RESUMES + 1):
        desk.world.alive.clear()
        due = desk.do(work_of.find_next_work, C1, me=OwnerId(f"own_{count}"))
        assert due is not None
        assert due.start_mode is (
            StartMode.IN_ORDER if count < MAX_RESUMES - 1 else StartMode.ALONE
        )
        begun = desk.do(acting.begin, OwnerId(f"own_{count}"))
        assert begun.turn is not None
        assert begun.turn.resumes == count
    desk.do(acting.append, begun.lease, "ent_1")
    begun = desk.do(acting.begin, OwnerId("own_last"))
    assert begun.turn is not None
    assert begun.turn.resumes == 1


def test_a_turn_that_was_drained_is_no_lost_one(desk: Desk) -> None:
    desk.do(leases.release_lease, started(desk).lease)
    begun = desk.do(acting.begin, OTHER)
    assert begun.turn is not None
    assert (begun.resumed, begun.turn.resumes) == (True, 0)


def test_a_message_in_a_closed_conversation_reopens_it_with_its_whole_context(
    desk: Desk,
) -> None:
    begun = started(desk)
    desk.do(acting.append, begun.lease, "ent_1")
    desk.do(sessions.end_head, begun.lease, "reset")
    _finish(desk, begun)
    desk.do(acting.accept, message("inb_2"))
    assert _begin(desk) is not None
    said = [m.message for m in desk.do(context.read_head_context, C1).messages]
    assert said == ['"inb_1"', '"ent_1"', '"inb_2"']


def test_a_turn_that_is_done_stays_done(desk: Desk) -> None:
    begun = started(desk)
    done = _finish(desk, begun, "ent_1")
    taken = desk.do(leases.acquire_lease, C1, owner=ME).lease
    with pytest.raises(InvalidTransition):
        desk.do(turns.suspend_turn, taken, T1)
    session = desk.do(acting.head).id
    assert desk.do(turns.finish_turn, taken, session, T1, TurnOutcome.FAILED, error="x") == done


def test_a_name_longer_than_any_name_means_nothing(desk: Desk) -> None:
    """It is not taken for the conversation whose name it begins with."""
    name = "x" * 200
    desk.do(acting.accept, message("inb_1"), acting.local_route(name))
    assert desk.do(conversations.resolve_conversation, name) == C1
    with pytest.raises(conversations.NotFound):
        desk.do(conversations.resolve_conversation, name + "y")


def test_dead_letters_come_in_pages_newest_first(desk: Desk) -> None:
    started(desk)
    names = [DeliveryId(f"dlv_{number}") for number in range(4)]
    for name in names:
        new = NewDelivery(id=name, route=MAIN.key, kind=DeliveryKind.NOTICE, body=name)
        desk.do(deliveries.add_delivery, C1, new)
    for name in names[:3]:
        desk.do(deliveries.drop_delivery, name, why="gone")
    failed = (DeliveryState.FAILED,)

    def page(before: DeliveryId | None) -> list[DeliveryId]:
        found = desk.do(deliveries.list_dead_letters, failed, limit=2, before=before)
        return [letter.id for letter, _ in found]

    assert [page(None), page(names[1]), page(names[0])] == [names[2:0:-1], names[:1], []]
    every = desk.do(deliveries.list_dead_letters, tuple(DeliveryState))
    assert [letter.id for letter, _ in every] == names[::-1]
