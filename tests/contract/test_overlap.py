"""
Two transactions at once: the second sees what the first did, or is refused; never half of it.

On PostgreSQL these overlap row by row, on SQLite the second waits for the first.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clew.core.approval import ApprovalState
from clew.core.conversation import TitledBy
from clew.core.delivery import DeliveryKind, DeliveryState, NewDelivery
from clew.core.double_text import DoubleText
from clew.core.effect import Effect
from clew.core.ids import ApprovalId, ConversationId, DeliveryId, InboxId, TurnId, new_session_id
from clew.core.inbox import InboxOutcome
from clew.core.journal import CallKey, CallStatus
from clew.core.scope import LOCAL
from clew.core.turn import StopRequest, TurnOutcome
from clew.errors import (
    InvalidTransition,
    LeaseHeld,
    LeaseLost,
    NotFound,
    RotationConflict,
    TitleTaken,
    TurnRolledBack,
)
from clew.store import search
from clew.store.transactions import (
    approvals,
    conversations,
    deletion,
    deliveries,
    entries,
    idempotency,
    inbox,
    journal,
    leases,
    locks,
    resets,
    turn_queries,
    turns,
)
from tests.contract import acting
from tests.contract.acting import LEASE_MS, MAIN, ME, OTHER, message, started

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.store.contract import Tx
    from tests.contract.acting import Overlap
    from tests.contract.desk import Desk

EVENT = ("telegram", "bot", "17")
C1 = ConversationId("cnv_1")
T1 = TurnId("trn_1")
CALL = CallKey(turn_id=T1, step=1, call_id="call_1")


def test_an_event_that_arrives_twice_at_once_is_accepted_once(overlap: Overlap) -> None:
    """3.7"""
    first, second = overlap(
        lambda t: acting.accept(t, message("inb_1", event=EVENT)),
        lambda t: acting.accept(t, message("inb_2", event=EVENT), new="cnv_2"),
    )
    assert (first.duplicate, second.duplicate) == (False, True)
    assert second.inbox_id == first.inbox_id == "inb_1"


def test_an_input_that_is_repeated_while_the_first_call_runs_gets_its_answer(
    overlap: Overlap,
) -> None:
    """3.12"""
    first, second = overlap(
        lambda t: acting.accept(t, message("inb_1")),
        lambda t: acting.accept(t, message("inb_1")),
    )
    assert second == first


def test_two_first_messages_on_a_route_share_one_conversation(overlap: Overlap, desk: Desk) -> None:
    first, second = overlap(
        lambda t: acting.accept(t, message("inb_1"), new="cnv_1"),
        lambda t: acting.accept(t, message("inb_2"), new="cnv_2"),
    )
    assert first.conversation_id == second.conversation_id == C1
    assert [item.id for item in desk.do(inbox.list_open_items, C1)] == ["inb_1", "inb_2"]


def _open(t: Tx, name: str) -> None:
    conversations.open_conversation(
        t, ConversationId(name), scope=LOCAL, session_ids=new_session_id
    )


def test_no_message_lands_in_a_conversation_that_its_route_just_left(
    overlap: Overlap, desk: Desk
) -> None:
    desk.do(acting.accept, message("inb_1"))
    desk.do(_open, "cnv_2")
    _, accepted = overlap(
        lambda t: conversations.move_route(t, MAIN.key, ConversationId("cnv_2")),
        lambda t: acting.accept(t, message("inb_2")),
    )
    assert accepted.conversation_id == "cnv_2"


def test_a_route_moves_after_the_message_that_is_being_accepted(
    overlap: Overlap, desk: Desk
) -> None:
    desk.do(acting.accept, message("inb_1"))
    desk.do(_open, "cnv_2")
    accepted, before = overlap(
        lambda t: acting.accept(t, message("inb_2")),
        lambda t: conversations.move_route(t, MAIN.key, ConversationId("cnv_2")),
    )
    assert accepted.conversation_id == before == C1


def test_a_message_that_is_accepted_while_its_route_starts_afresh_is_cancelled_with_the_rest(
    overlap: Overlap, desk: Desk
) -> None:
    """3.9: it was said before ``/new``, and does not stay behind unanswered."""
    desk.do(acting.accept, message("inb_1"))
    overlap(
        lambda t: acting.accept(t, message("inb_2")),
        lambda t: resets.start_new_conversation(
            t, MAIN, item=InboxId("inb_new"), new_conversation=ConversationId("cnv_2"),
            session_ids=new_session_id, reason="reset",
        ),
    )  # fmt: skip
    assert desk.do(inbox.get_item, InboxId("inb_2")).outcome is InboxOutcome.CANCELLED


@pytest.mark.parametrize("anew", [False, True], ids=["added", "made anew"])
@pytest.mark.parametrize("deleted_first", [False, True], ids=["indexed first", "deleted first"])
def test_a_message_deleted_while_it_is_indexed_is_in_no_index(
    overlap: Overlap, desk: Desk, anew: bool, deleted_first: bool
) -> None:
    desk.do(acting.append, started(desk).lease, "ent_1", "ent_2")
    if anew:
        desk.do(search.mark_damaged)
        desk.do(search.start_rebuild)
    desk.do(deletion.mark_deleted, C1)
    both = [_forget, search.index_batch]
    overlap(*both if deleted_first else reversed(both))
    assert desk.do(entries.read_entries_after, C1, after=0, limit=9) == []
    assert desk.do(lambda t: t.search_index.find_faults()) == []


def _forget(t: Tx) -> None:
    for n in search.unindex_entries(t, C1):
        t.execute("DELETE FROM entry WHERE n = $1", n)


def test_of_two_owners_that_begin_at_once_one_holds_the_lease(overlap: Overlap, desk: Desk) -> None:
    """3.4, 3.6"""
    desk.world.alive |= {ME, OTHER}
    desk.do(acting.accept, message("inb_1"))
    first, second = overlap(acting.begin, lambda t: acting.begin(t, OTHER, "trn_2"))
    assert first.turn.id == T1
    assert isinstance(second, LeaseHeld)


def test_of_two_rotations_that_race_one_conflicts_and_changes_nothing(
    overlap: Overlap, desk: Desk
) -> None:
    """3.3"""
    lease = started(desk).lease
    found = desk.do(acting.expected)
    first, second = overlap(
        lambda t: acting.rotate(t, lease, found, "op_1"),
        lambda t: acting.rotate(t, lease, found, "op_2"),
    )
    assert isinstance(second, RotationConflict)
    assert desk.do(acting.head).id == first.id
    assert len(desk.snapshot()["session"]) == 2


def test_a_rotation_that_is_repeated_while_the_first_call_runs_opens_one_session(
    overlap: Overlap, desk: Desk
) -> None:
    """3.12: the repeated call finds the session, or learns that the head has moved."""
    lease = started(desk).lease
    found = desk.do(acting.expected)
    first, second = overlap(
        lambda t: acting.rotate(t, lease, found), lambda t: acting.rotate(t, lease, found)
    )
    assert second == first


def test_a_rotation_conflicts_with_what_was_said_since(overlap: Overlap, desk: Desk) -> None:
    """3.3"""
    lease = started(desk).lease
    found = desk.do(acting.expected)
    _, rotated = overlap(
        lambda t: acting.append(t, lease, "ent_1"), lambda t: acting.rotate(t, lease, found)
    )
    assert isinstance(rotated, RotationConflict)


def test_an_owner_that_is_overtaken_while_it_appends_loses_its_lease(
    overlap: Overlap, desk: Desk
) -> None:
    """3.4"""
    lease = started(desk).lease
    desk.world.now += LEASE_MS + 1
    taken, appended = overlap(
        lambda t: leases.acquire_lease(t, C1, owner=OTHER),
        lambda t: acting.append(t, lease, "ent_1"),
    )
    assert taken.lease.fence == lease.fence + 1
    assert isinstance(appended, LeaseLost)


def test_an_owner_that_overtakes_counts_what_is_being_appended(
    overlap: Overlap, desk: Desk
) -> None:
    """3.2"""
    lease = started(desk).lease
    desk.world.now += LEASE_MS + 1
    _, taken = overlap(
        lambda t: acting.append(t, lease, "ent_1"),
        lambda t: leases.acquire_lease(t, C1, owner=OTHER),
    )
    assert taken.last_seq == 2


def test_a_message_that_is_taken_back_while_a_turn_begins_is_not_answered(
    overlap: Overlap, desk: Desk
) -> None:
    """3.9"""
    desk.world.alive.add(ME)
    desk.do(acting.accept, message("inb_1"))
    desk.do(acting.accept, message("inb_2"))
    cancelled, begun = overlap(
        lambda t: inbox.cancel_item(t, InboxId("inb_1"), note="taken back"), acting.begin
    )
    assert cancelled
    assert begun.turn is not None
    assert desk.do(inbox.get_item, InboxId("inb_1")).outcome is InboxOutcome.CANCELLED
    assert desk.do(inbox.get_item, InboxId("inb_2")).outcome is InboxOutcome.TURN


def test_a_message_that_is_edited_while_a_turn_begins_is_said_as_edited(
    overlap: Overlap, desk: Desk
) -> None:
    """3.8"""
    desk.world.alive.add(ME)
    desk.do(acting.accept, message("inb_1"))
    edited, begun = overlap(lambda t: inbox.edit_message(t, InboxId("inb_1"), "new"), acting.begin)
    assert edited
    assert begun.turn is not None
    assert [row[8] for row in desk.snapshot()["entry"] if "new" in row] == ["new"]


def test_a_message_that_is_edited_after_its_turn_began_is_not_edited(
    overlap: Overlap, desk: Desk
) -> None:
    desk.world.alive.add(ME)
    desk.do(acting.accept, message("inb_1"))
    _, edited = overlap(acting.begin, lambda t: inbox.edit_message(t, InboxId("inb_1"), "new"))
    assert edited is False


def test_a_delivery_that_two_channels_claim_at_once_is_sent_by_one(
    overlap: Overlap, desk: Desk
) -> None:
    _deliver(desk)
    first, second = overlap(
        lambda t: deliveries.claim_next_delivery(t, MAIN.key, owner=ME, claim="op_1"),
        lambda t: deliveries.claim_next_delivery(t, MAIN.key, owner=OTHER, claim="op_2"),
    )
    assert first.state is DeliveryState.SENDING
    assert second is None


def test_a_claim_that_is_repeated_while_it_is_made_is_one_claim(
    overlap: Overlap, desk: Desk
) -> None:
    """Its answer was lost, and the connection with it; the first one commits after all."""
    _deliver(desk)
    first, second = overlap(
        lambda t: deliveries.claim_next_delivery(t, MAIN.key, owner=ME, claim="op_1"),
        lambda t: deliveries.claim_next_delivery(t, MAIN.key, owner=ME, claim="op_1"),
    )
    assert first == second
    assert (second.state, second.attempts) == (DeliveryState.SENDING, 1)


def _deliver(desk: Desk) -> DeliveryId:
    begun = started(desk)
    delivery = NewDelivery(
        id=DeliveryId("dlv_1"), route=MAIN.key, kind=DeliveryKind.ANSWER, body="{}"
    )
    session = desk.do(acting.head).id
    desk.do(
        turns.finish_turn, begun.lease, session, T1, TurnOutcome.ANSWERED,
        drafts=[acting.draft("ent_1")], deliveries=[delivery],
    )  # fmt: skip
    return delivery.id


def test_a_delivery_that_has_arrived_does_not_become_unknown(overlap: Overlap, desk: Desk) -> None:
    delivery = _deliver(desk)
    desk.do(deliveries.claim_next_delivery, MAIN.key, owner=ME, claim="op_1")
    _, second = overlap(
        lambda t: deliveries.set_delivery_state(t, delivery, DeliveryState.DELIVERED),
        lambda t: deliveries.set_delivery_state(t, delivery, DeliveryState.UNKNOWN),
    )
    assert isinstance(second, InvalidTransition)
    assert desk.do(deliveries.get_delivery, delivery).state is DeliveryState.DELIVERED


def _ask(desk: Desk) -> ApprovalId:
    lease = started(desk).lease
    asked = desk.do(
        approvals.request_approval, lease, CALL, approval=ApprovalId("apr_1"), tool="t", args="{}",
        route=None, expires_in=timedelta(minutes=1),
    )  # fmt: skip
    return asked.id


def test_the_first_of_two_answers_to_a_question_stays(overlap: Overlap, desk: Desk) -> None:
    question = _ask(desk)
    first, second = overlap(
        lambda t: approvals.answer_approval(t, question, ApprovalState.DENIED, answered_by="a"),
        lambda t: approvals.answer_approval(t, question, ApprovalState.APPROVED, answered_by="b"),
    )
    assert first.state is ApprovalState.DENIED
    assert isinstance(second, InvalidTransition)


def test_the_first_of_two_results_of_a_call_stays(overlap: Overlap, desk: Desk) -> None:
    """3.12"""
    lease = started(desk).lease
    session = desk.do(acting.head).id
    drafts = [acting.draft("ent_1", calls=("call_1",))]
    desk.do(turns.store_step, lease, session, T1, drafts)
    desk.do(journal.record_intent, lease, CALL, position=0, tool="t", args="{}", effect=Effect.PURE)
    _, second = overlap(
        lambda t: journal.record_result(t, lease, CALL, CallStatus.OK, format="t/1", result="1"),
        lambda t: journal.record_result(t, lease, CALL, CallStatus.ERROR, format="t/1", result="2"),
    )
    assert (second.status, second.result) == (CallStatus.OK, "1")


def test_a_turn_that_is_finished_twice_at_once_has_the_first_outcome(
    overlap: Overlap, desk: Desk
) -> None:
    """3.8, 3.12: the second learns the outcome, or that it has no lease any more."""
    lease = started(desk).lease
    session = desk.do(acting.head).id
    first, second = overlap(
        lambda t: turns.finish_turn(t, lease, session, T1, TurnOutcome.ANSWERED),
        lambda t: turns.finish_turn(t, lease, session, T1, TurnOutcome.FAILED, error="x"),
    )
    assert second == first or isinstance(second, LeaseLost)
    assert desk.do(turn_queries.get_turn, T1).outcome is TurnOutcome.ANSWERED


def test_a_turn_that_is_taken_back_while_it_finishes_is_not_answered(
    overlap: Overlap, desk: Desk
) -> None:
    """3.9: the person was told that the message takes the turn back."""
    lease = started(desk).lease
    session = desk.do(acting.head).id
    _, finished = overlap(
        lambda t: acting.accept(t, message("inb_2", DoubleText.ROLLBACK)),
        lambda t: turns.finish_turn(t, lease, session, T1, TurnOutcome.ANSWERED),
    )
    assert isinstance(finished, TurnRolledBack)
    assert desk.do(turn_queries.get_turn, T1).stop is StopRequest.ROLLBACK


def test_a_message_that_takes_back_a_turn_that_finishes_is_answered_after_it(
    overlap: Overlap, desk: Desk
) -> None:
    lease = started(desk).lease
    session = desk.do(acting.head).id
    overlap(
        lambda t: turns.finish_turn(t, lease, session, T1, TurnOutcome.ANSWERED),
        lambda t: acting.accept(t, message("inb_2", DoubleText.ROLLBACK)),
    )
    assert desk.do(turn_queries.get_turn, T1).stop is None
    assert [item.id for item in desk.do(inbox.list_open_items, C1)] == ["inb_2"]


def test_a_stop_that_comes_while_a_turn_finishes_changes_nothing(
    overlap: Overlap, desk: Desk
) -> None:
    lease = started(desk).lease
    session = desk.do(acting.head).id
    _, asked = overlap(
        lambda t: turns.finish_turn(t, lease, session, T1, TurnOutcome.ANSWERED),
        lambda t: turn_queries.request_stop(t, T1, StopRequest.STOP),
    )
    assert asked is False


def test_nothing_is_accepted_into_a_conversation_that_is_being_deleted(
    overlap: Overlap, desk: Desk
) -> None:
    desk.do(acting.accept, message("inb_1"))
    _, accepted = overlap(
        lambda t: deletion.mark_deleted(t, C1),
        lambda t: acting.accept(t, message("inb_2"), target=C1),
    )
    assert isinstance(accepted, NotFound)


def test_an_input_accepted_during_a_deletion_is_cancelled(overlap: Overlap, desk: Desk) -> None:
    """3.9"""
    desk.do(acting.accept, message("inb_1"))
    _, deleted = overlap(
        lambda t: acting.accept(t, message("inb_2"), target=C1),
        lambda t: deletion.mark_deleted(t, C1),
    )
    assert deleted
    assert desk.do(inbox.get_item, InboxId("inb_2")).outcome is InboxOutcome.CANCELLED


def test_a_message_on_a_route_whose_conversation_is_being_deleted_opens_a_new_one(
    overlap: Overlap, desk: Desk
) -> None:
    desk.do(acting.accept, message("inb_1"))
    _, accepted = overlap(
        lambda t: deletion.mark_deleted(t, C1),
        lambda t: acting.accept(t, message("inb_2"), new="cnv_2"),
    )
    assert accepted.conversation_id == "cnv_2"


def test_an_owner_that_writes_while_its_conversation_is_deleted_loses_its_lease(
    overlap: Overlap, desk: Desk
) -> None:
    lease = started(desk).lease
    _, appended = overlap(
        lambda t: deletion.mark_deleted(t, C1), lambda t: acting.append(t, lease, "ent_1")
    )
    assert isinstance(appended, LeaseLost | NotFound)


def test_a_delete_counts_what_is_being_appended(overlap: Overlap, desk: Desk) -> None:
    lease = started(desk).lease
    overlap(lambda t: acting.append(t, lease, "ent_1"), lambda t: deletion.mark_deleted(t, C1))
    ((_, last_seq, *_),) = desk.snapshot()["tombstone"]
    assert last_seq == 2


def test_a_conversation_that_is_deleted_twice_at_once_is_deleted(
    overlap: Overlap, desk: Desk
) -> None:
    """3.12"""
    desk.do(acting.accept, message("inb_1"))
    assert overlap(
        lambda t: deletion.mark_deleted(t, C1), lambda t: deletion.mark_deleted(t, C1)
    ) == (True, True)


def test_of_two_conversations_that_want_one_title_at_once_one_gets_it(
    overlap: Overlap, desk: Desk
) -> None:
    """S1.4: a ``ValueError`` for the other."""
    desk.do(_open, "cnv_1")
    desk.do(_open, "cnv_2")
    first, second = overlap(
        lambda t: conversations.rename_conversation(t, C1, "Plans"),
        lambda t: conversations.rename_conversation(t, ConversationId("cnv_2"), "Plans"),
    )
    assert first is True
    assert isinstance(second, TitleTaken)
    assert isinstance(second, ValueError)


def test_a_persons_title_stays_whichever_of_both_comes_second(overlap: Overlap, desk: Desk) -> None:
    def by(who: TitledBy) -> Callable[[Tx], bool]:
        return lambda t: conversations.rename_conversation(
            t, C1, f"by the {who.value}", titled_by=who
        )

    for first, second in ((TitledBy.PERSON, TitledBy.MODEL), (TitledBy.MODEL, TitledBy.PERSON)):
        desk.do(_open, "cnv_1")
        desk.do(conversations.rename_conversation, C1, None)
        overlap(by(first), by(second))
        assert desk.do(conversations.get_conversation, C1).title == "by the person"


def test_of_two_that_want_a_lock_at_once_one_gets_it(overlap: Overlap, desk: Desk) -> None:
    """S3.1"""
    desk.do(_open, "cnv_1")
    session = desk.do(acting.head).id
    assert overlap(
        lambda t: locks.try_acquire_compression_lock(t, session, "a"),
        lambda t: locks.try_acquire_compression_lock(t, session, "b"),
    ) == (True, False)
    assert desk.do(locks.get_compression_lock_holder, session) == "a"


def test_of_two_requests_with_one_key_the_second_joins_the_first(overlap: Overlap) -> None:
    key = idempotency.hash_idempotency_key("token", "/v1/x", "k")
    first, second = overlap(
        lambda t: idempotency.claim_key(t, key, body=b"b"),
        lambda t: idempotency.claim_key(t, key, body=b"b"),
    )
    assert (first[1], second[1]) == (True, False)
