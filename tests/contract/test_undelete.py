"""A deleted conversation can be brought back as it was, for a while, and never half."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clew.core.ids import ConversationId
from clew.core.route import Route, local_route
from clew.core.scope import LOCAL, Scope
from clew.errors import ConstraintViolated, LeaseLost, NotFound
from clew.store.transactions import conversations, deletion, entries, undelete
from tests.contract import acting, invariants
from tests.contract.acting import MAIN, message, started

if TYPE_CHECKING:
    from tests.contract.desk import Desk

C1 = ConversationId("cnv_1")
GRACE = timedelta(minutes=10)
MINUTES = 60 * 1000  # in milliseconds


def deleted(desk: Desk, *, title: str | None = "Crete") -> None:
    """A conversation with a running turn, deleted a moment ago."""
    started(desk)
    desk.do(conversations.rename_conversation, C1, title)
    assert desk.do(deletion.mark_deleted, C1, undo_for=GRACE)


def test_a_deleted_conversation_comes_back_with_all_that_was_said(desk: Desk) -> None:
    started(desk)
    desk.do(conversations.rename_conversation, C1, "Crete")
    before = desk.do(conversations.get_conversation, C1)
    log = desk.do(entries.read_entries_after, C1, after=0, limit=100)
    desk.do(deletion.mark_deleted, C1, undo_for=GRACE)
    with pytest.raises(NotFound):
        desk.do(conversations.get_conversation, C1)
    (found,) = desk.do(undelete.list_deleted_conversations, viewer=LOCAL)
    assert (found.id, found.title, found.entries) == (C1, "Crete", len(log))
    after = desk.do(undelete.undelete_conversation, C1, viewer=LOCAL)
    assert (after.title, after.head, after.last_seq) == (before.title, before.head, before.last_seq)
    assert desk.do(entries.read_entries_after, C1, after=0, limit=100) == log
    assert desk.do(conversations.resolve_conversation, MAIN.key) == C1
    assert desk.do(undelete.list_deleted_conversations, viewer=LOCAL) == []
    assert desk.do(invariants.check) == []


def test_an_owner_from_before_a_deletion_cannot_write_after_its_undo(desk: Desk) -> None:
    begun = started(desk)
    desk.do(deletion.mark_deleted, C1, undo_for=GRACE)
    desk.do(undelete.undelete_conversation, C1, viewer=LOCAL)
    with pytest.raises(LeaseLost):
        desk.do(acting.append, begun.lease, "ent_late")
    desk.do(acting.accept, message("inb_2"))
    again = desk.do(acting.begin, turn="trn_2")
    assert again.lease.fence > begun.lease.fence
    desk.do(acting.append, again.lease, "ent_2")
    assert desk.do(invariants.check) == []


def test_a_route_that_has_moved_on_and_a_title_that_was_taken_stay_where_they_are(
    desk: Desk,
) -> None:
    deleted(desk)
    new = desk.do(acting.accept, message("inb_2"), new="cnv_2").conversation_id
    desk.do(conversations.rename_conversation, new, "Crete")
    assert desk.do(undelete.undelete_conversation, C1, viewer=LOCAL).title is None
    assert desk.do(conversations.resolve_conversation, local_route("main").key) == new
    assert desk.do(invariants.check) == []


def test_after_its_time_it_is_removed_and_does_not_come_back(desk: Desk) -> None:
    deleted(desk)
    desk.world.now += 10 * MINUTES - 1
    assert desk.do(deletion.list_pending_deletions) == []
    assert not desk.do(undelete.end_grace_period, C1)
    desk.world.now += 1
    assert desk.do(deletion.list_pending_deletions) == [C1]
    with pytest.raises(NotFound):
        desk.do(undelete.undelete_conversation, C1, viewer=LOCAL)
    assert desk.do(undelete.end_grace_period, C1)
    _remove_all(desk)
    assert desk.do(invariants.check) == []


def _remove_all(desk: Desk) -> None:
    while desk.do(deletion.delete_slice, C1):
        pass


def test_a_notice_that_no_channel_delivers_holds_a_deleted_conversation_back_for_a_week(
    desk: Desk,
) -> None:
    chat = Route(platform="telegram", account="gone", kind="dm", chat="7")
    desk.do(acting.accept, message("inb_1"), target=chat)
    desk.do(deletion.mark_deleted, C1, notice="deleted")
    week = deletion.NOTICE_DAYS * 24 * 60 * MINUTES
    desk.world.now += week - 1
    _remove_all(desk)
    assert desk.do(deletion.list_pending_deletions) == [C1]
    desk.world.now += 1
    _remove_all(desk)
    assert desk.do(deletion.list_pending_deletions) == []
    assert desk.do(invariants.check) == []


def test_one_that_was_brought_back_meanwhile_is_not_removed(desk: Desk) -> None:
    deleted(desk)
    desk.world.now += 10 * MINUTES - 1
    desk.do(undelete.undelete_conversation, C1, viewer=LOCAL)
    desk.world.now += 1
    assert not desk.do(undelete.end_grace_period, C1)
    assert not desk.do(undelete.end_grace_period, C1, at_once=True)
    with pytest.raises(ConstraintViolated):
        _remove_all(desk)
    desk.do(deletion.mark_deleted, C1, undo_for=GRACE)
    with pytest.raises(ConstraintViolated):
        _remove_all(desk)


def test_only_who_may_see_it_can_bring_it_back(desk: Desk) -> None:
    deleted(desk)
    stranger = Scope("telegram:dm:7")
    assert desk.do(undelete.list_deleted_conversations, viewer=stranger) == []
    with pytest.raises(NotFound):
        desk.do(undelete.undelete_conversation, C1, viewer=stranger)
    with pytest.raises(NotFound):
        desk.do(undelete.undelete_conversation, ConversationId("cnv_never"), viewer=LOCAL)
