"""3.4 and 3.5: who may write, and to what."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clew.core.effect import Effect
from clew.core.ids import ApprovalId, ConversationId, OwnerId, TurnId
from clew.core.journal import CallKey, CallStatus
from clew.core.turn import TurnOutcome
from clew.errors import LeaseHeld, LeaseLost, NotFound, RotationConflict, SessionEnded
from clew.store.transactions import (
    approvals,
    entries,
    journal,
    leases,
    locks,
    sessions,
    turns,
)
from tests.contract import acting
from tests.contract.acting import LEASE_MS, ME, OTHER, message, started

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.ids import SessionId
    from clew.core.lease import Lease
    from clew.store.contract import Tx
    from tests.contract.desk import Desk

C1, T1 = ConversationId("cnv_1"), TurnId("trn_1")
CALL = CallKey(turn_id=T1, step=1, call_id="call_1")
DRAFTS = [acting.draft("ent_x")]

#: Every write under a lease.
WRITES: dict[str, Callable[[Tx, Lease, SessionId], object]] = {
    "append": lambda t, lease, at: entries.append_entries(t, lease, at, DRAFTS),
    "renew": lambda t, lease, _: leases.renew_lease(t, lease),
    "rotate": lambda t, lease, _: acting.rotate(t, lease, acting.expected(t)),
    "end_head": lambda t, lease, _: sessions.end_head(t, lease, "idle"),
    "store_step": lambda t, lease, at: turns.store_step(t, lease, at, T1, DRAFTS),
    "steer": lambda t, lease, at: turns.steer_turn(
        t, lease, at, T1, step=1, after=1, compose=acting.compose
    ),
    "wait": lambda t, lease, _: turns.suspend_turn(t, lease, T1),
    "finish": lambda t, lease, at: turns.finish_turn(t, lease, at, T1, TurnOutcome.ANSWERED),
    "intend": lambda t, lease, _: journal.record_intent(
        t, lease, CALL, position=0, tool="t", args="{}", effect=Effect.PURE
    ),
    "run_again": lambda t, lease, _: journal.count_rerun(t, lease, CALL),
    "settle": lambda t, lease, _: journal.record_result(
        t, lease, CALL, CallStatus.OK, format="f", result="r"
    ),
    "ask": lambda t, lease, _: approvals.request_approval(
        t, lease, CALL, approval=ApprovalId("apr_1"), tool="t", args="{}", route=None,
        expires_in=timedelta(minutes=1),
    ),
}  # fmt: skip


def _refused(desk: Desk, lease: Lease, write: str) -> None:
    session = desk.do(acting.head).id
    before = desk.snapshot()
    with pytest.raises(LeaseLost):
        desk.do(WRITES[write], lease, session)
    assert desk.snapshot() == before


@pytest.mark.parametrize("write", WRITES)
def test_an_owner_that_was_overtaken_can_write_nothing(desk: Desk, write: str) -> None:
    lease = started(desk).lease
    desk.do(acting.accept, message("inb_2", acting.DoubleText.STEER))
    desk.world.now += LEASE_MS
    desk.do(leases.acquire_lease, C1, owner=OTHER)
    _refused(desk, lease, write)


@pytest.mark.parametrize("write", WRITES)
def test_an_owner_that_let_go_and_came_back_cannot_use_its_old_lease(
    desk: Desk, write: str
) -> None:
    """The fence rises, although the owner is the same."""
    lease = started(desk).lease
    desk.do(leases.release_lease, lease)
    assert desk.do(leases.acquire_lease, C1, owner=ME).lease.fence == lease.fence + 1
    _refused(desk, lease, write)


def test_a_lease_is_kept_from_others_while_its_owner_lives(desk: Desk) -> None:
    started(desk)
    desk.world.now += LEASE_MS - 1
    with pytest.raises(LeaseHeld):
        desk.do(leases.acquire_lease, C1, owner=OTHER)


def test_a_lease_whose_time_is_over_is_free_although_its_owner_lives(desk: Desk) -> None:
    lease = started(desk).lease
    desk.world.now += LEASE_MS
    taken = desk.do(leases.acquire_lease, C1, owner=OTHER)
    assert (taken.lost_owner, taken.lease.fence) == (ME, lease.fence + 1)


def test_a_lease_whose_owner_is_dead_is_free_at_once(desk: Desk) -> None:
    started(desk)
    desk.world.alive.discard(ME)
    assert desk.do(leases.acquire_lease, C1, owner=OTHER).lost_owner == ME


def test_a_lease_that_a_jumping_clock_made_endless_is_free(desk: Desk) -> None:
    started(desk)
    desk.world.now -= 2 * LEASE_MS
    assert desk.do(leases.acquire_lease, C1, owner=OTHER).lost_owner == ME


def test_renewing_keeps_the_fence_and_moves_the_end(desk: Desk) -> None:
    lease = started(desk).lease
    desk.world.now += LEASE_MS - 1
    renewed = desk.do(leases.renew_lease, lease)
    assert renewed.fence == lease.fence
    desk.world.now += LEASE_MS - 1
    with pytest.raises(LeaseHeld):
        desk.do(leases.acquire_lease, C1, owner=OTHER)


def test_a_finished_turn_leaves_the_lease_free(desk: Desk) -> None:
    lease = started(desk).lease
    desk.do(turns.finish_turn, lease, desk.do(acting.head).id, T1, TurnOutcome.ANSWERED)
    taken = desk.do(leases.acquire_lease, C1, owner=OTHER)
    assert taken.lost_owner is None


def test_letting_go_of_what_another_owner_holds_changes_nothing(desk: Desk) -> None:
    lease = started(desk).lease
    desk.world.alive.discard(ME)
    desk.do(leases.acquire_lease, C1, owner=OTHER)
    before = desk.snapshot()
    desk.do(leases.release_lease, lease)
    assert desk.snapshot() == before


def test_a_conversation_that_does_not_exist_has_no_lease(desk: Desk) -> None:
    with pytest.raises(NotFound):
        desk.do(leases.acquire_lease, ConversationId("cnv_none"), owner=OwnerId("own_x"))


def test_nothing_appends_to_a_session_that_has_ended_and_the_head_is_named(desk: Desk) -> None:
    """3.5"""
    lease = started(desk).lease
    old = desk.do(acting.head).id
    new = desk.do(acting.rotate, lease, desk.do(acting.expected)).id
    before = desk.snapshot()
    with pytest.raises(SessionEnded) as raised:
        desk.do(entries.append_entries, lease, old, DRAFTS)
    assert (raised.value.session, raised.value.head) == (old, new)
    assert desk.snapshot() == before


def test_nothing_appends_to_a_closed_conversation(desk: Desk) -> None:
    """3.5"""
    lease = started(desk).lease
    head = desk.do(sessions.end_head, lease, "reset")
    with pytest.raises(SessionEnded):
        desk.do(entries.append_entries, lease, head.id, DRAFTS)


def test_a_rotation_that_expects_another_last_seq_changes_nothing(desk: Desk) -> None:
    """3.3"""
    lease = started(desk).lease
    found = desk.do(acting.expected)
    desk.do(acting.append, lease, "ent_1")
    before = desk.snapshot()
    with pytest.raises(RotationConflict):
        desk.do(acting.rotate, lease, found)
    assert desk.snapshot() == before


def test_s3_2_a_compression_lock_is_held_by_one_and_known_by_any_session(desk: Desk) -> None:
    lease = started(desk).lease
    first = desk.do(acting.head).id
    assert desk.do(locks.try_acquire_compression_lock, first, "external_holder")
    second = desk.do(acting.rotate, lease, desk.do(acting.expected)).id
    assert not desk.do(locks.try_acquire_compression_lock, second, "me")
    assert desk.do(locks.get_compression_lock_holder, second) == "external_holder"
    desk.do(locks.release_compression_lock, second, "me")
    assert desk.do(locks.get_compression_lock_holder, first) == "external_holder"
    desk.do(locks.release_compression_lock, second, "external_holder")
    assert desk.do(locks.get_compression_lock_holder, first) is None
    assert desk.do(locks.try_acquire_compression_lock, first, "me")


def test_a_lock_whose_time_is_over_goes_to_the_next(desk: Desk) -> None:
    started(desk)
    minute = timedelta(minutes=1)
    assert desk.do(locks.try_lock, "name", "a", duration=minute)
    assert desk.do(locks.try_lock, "name", "a", duration=minute)
    desk.world.now += 60_000
    assert desk.do(locks.get_lock_holder, "name") is None
    assert desk.do(locks.try_lock, "name", "b", duration=minute)
    assert not desk.do(locks.try_lock, "name", "a", duration=minute)
