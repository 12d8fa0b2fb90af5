"""3.12: a call that is made again, since its answer was lost, returns the first answer."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clew.core.approval import ApprovalState
from clew.core.delivery import DeliveryKind, DeliveryState, NewDelivery
from clew.core.effect import Effect
from clew.core.ids import (
    ApprovalId,
    ConversationId,
    DeliveryId,
    InboxId,
    TurnId,
    new_session_id,
)
from clew.core.inbox import AcceptResult, InboxOutcome, NewInput
from clew.core.journal import CallKey, CallStatus
from clew.core.reset_policy import ResetPolicy
from clew.core.turn import TurnOutcome
from clew.errors import InvalidTransition, LeaseLost, StoreError
from clew.store.transactions import (
    approvals,
    deletion,
    deliveries,
    inbox,
    journal,
    leases,
    runs,
    submissions,
    turns,
)
from tests.contract import acting
from tests.contract.acting import MAIN, ME, OTHER, message, started

if TYPE_CHECKING:
    from clew.store.contract import Tx
    from tests.contract.desk import Desk

C1, T1 = ConversationId("cnv_1"), TurnId("trn_1")
CALL = CallKey(turn_id=T1, step=1, call_id="call_1")
EVENT = ("telegram", "bot", "17")


def test_accept(desk: Desk) -> None:
    first = desk.do(acting.accept, message("inb_1"))
    before = desk.snapshot()
    assert desk.do(acting.accept, message("inb_1"), new="cnv_2") == first
    assert desk.snapshot() == before


def test_accept_of_an_event_over_two_connections(desk: Desk, rival: Desk) -> None:
    """3.7"""
    desk.do(acting.accept, message("inb_1", event=EVENT))
    again = rival.do(acting.accept, message("inb_2", event=EVENT), new="cnv_2")
    assert (again.inbox_id, again.duplicate) == ("inb_1", True)
    assert len(desk.snapshot()["inbox"]) == 1


def test_submit_of_a_message_of_a_client_over_two_connections(desk: Desk, rival: Desk) -> None:
    assert desk.do(submit, "inb_1").duplicate is False
    again = rival.do(submit, "inb_2", new="cnv_2")
    assert (again.inbox_id, again.duplicate) == ("inb_1", True)
    assert rival.do(submit, "inb_3", text="other").inbox_id == "inb_3"
    assert len(desk.snapshot()["inbox"]) == 2
    # What was cancelled is free again.
    assert desk.do(inbox.cancel_item, InboxId("inb_1"), note="")
    assert rival.do(submit, "inb_4").duplicate is False
    assert desk.do(submit, "inb_5").inbox_id == "inb_4"


def submit(t: Tx, name: str, *, text: str = "hello", new: str = "cnv_1") -> AcceptResult:
    payload = runs.write_message_id("{}", "mine")
    found = submissions.submit_input(
        t,
        NewInput(id=InboxId(name), text=text, payload=payload, message_id="mine"),
        target=MAIN,
        new_conversation=ConversationId(new),
        session_ids=new_session_id,
        policy=ResetPolicy(),
    )
    assert isinstance(found, AcceptResult)
    return found


def test_accept_of_an_event_whose_conversation_was_deleted(desk: Desk) -> None:
    """3.7: the key outlives the conversation by 30 days, and no longer."""
    desk.do(acting.accept, message("inb_1", event=EVENT))
    desk.do(deletion.mark_deleted, C1)
    while desk.do(deletion.delete_slice, C1):
        pass
    desk.world.now += 30 * 24 * 3600 * 1000 - 1
    assert desk.do(deletion.delete_expired_event_keys) == 0
    again = desk.do(acting.accept, message("inb_2", event=EVENT), new="cnv_2")
    assert (again.duplicate, again.outcome) == (True, InboxOutcome.CANCELLED)
    desk.world.now += 1
    assert desk.do(deletion.delete_expired_event_keys) == 1


def test_begin(desk: Desk) -> None:
    begun = started(desk)
    desk.do(acting.accept, message("inb_2"))
    again = desk.do(acting.begin)
    assert (again.turn, again.lease) == (begun.turn, begun.lease)
    assert len(desk.snapshot()["entry"]) == 1


def test_append(desk: Desk, rival: Desk) -> None:
    lease = started(desk).lease
    first = desk.do(acting.append, lease, "ent_1", "ent_2")
    assert rival.do(acting.append, lease, "ent_1", "ent_2") == first
    assert [entry.seq for entry in first] == [2, 3]


def test_append_by_an_owner_that_has_lost_its_lease_since(desk: Desk) -> None:
    lease = started(desk).lease
    first = desk.do(acting.append, lease, "ent_1")
    desk.world.alive.discard(ME)
    desk.do(leases.acquire_lease, C1, owner=OTHER)
    assert desk.do(acting.append, lease, "ent_1") == first
    with pytest.raises(LeaseLost):
        desk.do(acting.append, lease, "ent_2")


def test_append_with_more_than_the_first_time_is_refused(desk: Desk) -> None:
    """Nothing that the caller believes to be stored is missing."""
    lease = started(desk).lease
    desk.do(acting.append, lease, "ent_1")
    desk.do(acting.append, lease, "ent_3")
    with pytest.raises(StoreError):
        desk.do(acting.append, lease, "ent_1", "ent_2")


def test_store_step(desk: Desk) -> None:
    begun = started(desk)
    session = desk.do(acting.head).id
    drafts = [acting.draft("ent_1")]
    first = desk.do(turns.store_step, begun.lease, session, T1, drafts)
    before = desk.snapshot()
    assert desk.do(turns.store_step, begun.lease, session, T1, drafts) == first
    assert desk.snapshot() == before


def test_rotate(desk: Desk, rival: Desk) -> None:
    lease = started(desk).lease
    found = desk.do(acting.expected)
    first = desk.do(acting.rotate, lease, found)
    assert rival.do(acting.rotate, lease, found) == first
    assert len(desk.snapshot()["session"]) == 2


def test_rotate_by_an_owner_that_has_lost_its_lease_since(desk: Desk) -> None:
    lease = started(desk).lease
    found = desk.do(acting.expected)
    first = desk.do(acting.rotate, lease, found)
    desk.world.alive.discard(ME)
    desk.do(leases.acquire_lease, C1, owner=OTHER)
    assert desk.do(acting.rotate, lease, found) == first
    with pytest.raises(LeaseLost):
        desk.do(acting.rotate, lease, found, "op_2")


def test_journal(desk: Desk) -> None:
    lease = started(desk).lease
    session = desk.do(acting.head).id
    drafts = [acting.draft("ent_1", calls=("call_1",))]
    desk.do(turns.store_step, lease, session, T1, drafts)
    for first in (True, False):
        call, new = desk.do(
            journal.record_intent, lease, CALL, position=0, tool="t", args="{}", effect=Effect.ONCE
        )
        assert (new, call.status) == (first, None)
    for result in ("first", "second"):
        done = desk.do(
            journal.record_result, lease, CALL, CallStatus.OK, format="t/1", result=result
        )
        assert done.result == "first"
    call, new = desk.do(
        journal.record_intent, lease, CALL, position=0, tool="t", args="{}", effect=Effect.ONCE
    )
    assert (new, call.result) == (False, "first")


def test_ask_and_answer(desk: Desk) -> None:
    lease = started(desk).lease
    for name in ("apr_1", "apr_2"):
        asked = desk.do(
            approvals.request_approval, lease, CALL, approval=ApprovalId(name), tool="t", args="{}",
            route=None, expires_in=timedelta(minutes=1),
        )  # fmt: skip
        assert asked.id == "apr_1"
    yes = ApprovalState.APPROVED
    first = desk.do(approvals.answer_approval, asked.id, yes, answered_by="p")
    assert desk.do(approvals.answer_approval, asked.id, yes, answered_by="p") == first
    with pytest.raises(InvalidTransition):
        desk.do(approvals.answer_approval, asked.id, ApprovalState.DENIED, answered_by="p")


def test_wait(desk: Desk) -> None:
    lease = started(desk).lease
    first = desk.do(turns.suspend_turn, lease, T1)
    before = desk.snapshot()
    assert desk.do(turns.suspend_turn, lease, T1) == first
    assert desk.snapshot() == before


def test_finish_and_its_deliveries(desk: Desk) -> None:
    """3.8"""
    lease = started(desk).lease
    new = NewDelivery(id=DeliveryId("dlv_1"), route=MAIN.key, kind=DeliveryKind.ANSWER, body="{}")
    session = desk.do(acting.head).id
    drafts = [acting.draft("ent_1")]
    first = desk.do(
        turns.finish_turn, lease, session, T1, TurnOutcome.ANSWERED, drafts=drafts, deliveries=[new]
    )
    before = desk.snapshot()
    for outcome in (TurnOutcome.ANSWERED, TurnOutcome.CANCELLED):
        again = desk.do(
            turns.finish_turn, lease, session, T1, outcome, drafts=drafts, deliveries=[new]
        )
        assert again == first
    assert desk.snapshot() == before
    _deliver_twice(desk, new.id)


def _deliver_twice(desk: Desk, delivery: DeliveryId) -> None:
    claimed = [
        desk.do(deliveries.claim_next_delivery, MAIN.key, owner=ME, claim="op_1") for _ in range(2)
    ]
    assert [each and (each.id, each.state, each.attempts) for each in claimed] == [
        (delivery, DeliveryState.SENDING, 1)
    ] * 2
    assert desk.do(deliveries.claim_next_delivery, MAIN.key, owner=ME, claim="op_2") is None
    desk.do(deliveries.store_chunks, delivery, ["one"])
    assert len(desk.do(deliveries.store_chunks, delivery, ["other", "two"])[:1]) == 1
    for _ in range(2):
        desk.do(deliveries.set_chunk_state, delivery, 0, DeliveryState.SENDING)
    for _ in range(2):
        chunk = desk.do(
            deliveries.set_chunk_state, delivery, 0, DeliveryState.DELIVERED, platform_id="9"
        )
        assert (chunk.body, chunk.platform_id) == ("one", "9")
    for _ in range(2):
        moved = desk.do(deliveries.set_delivery_state, delivery, DeliveryState.DELIVERED)
        assert (moved.state, moved.attempts) == (DeliveryState.DELIVERED, 1)


def test_delete(desk: Desk) -> None:
    started(desk)
    assert desk.do(deletion.mark_deleted, C1)
    before = desk.snapshot()
    assert desk.do(deletion.mark_deleted, C1)
    assert desk.snapshot() == before
    while desk.do(deletion.delete_slice, C1, rows=1):
        pass
    assert not desk.do(deletion.delete_slice, C1)
    assert not desk.do(deletion.mark_deleted, ConversationId("cnv_never"))
