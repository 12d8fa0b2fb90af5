"""Deletions and their undoing overlap with anything else: the whole of one, then of the other."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, LiteralString

import pytest

from clew.core.conversation import Conversation
from clew.core.ids import ConversationId
from clew.core.route import Route, local_route
from clew.core.scope import LOCAL
from clew.errors import InvalidTransition, NotFound
from clew.store.transactions import conversations, deletion, deliveries, undelete
from tests.contract import acting
from tests.contract.acting import ME, message, started
from tests.contract.desk import SimTx

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.delivery import Delivery
    from clew.store.contract import Tx, Value
    from tests.contract.acting import Overlap
    from tests.contract.desk import Desk

C1, C2 = ConversationId("cnv_1"), ConversationId("cnv_2")
OTHER_ROUTE = local_route("other")
CHAT = Route(platform="telegram", kind="dm", chat="42")


def delete(t: Tx) -> bool:
    return deletion.mark_deleted(t, C1, undo_for=timedelta(minutes=10))


def bring_back(t: Tx) -> Conversation:
    return undelete.undelete_conversation(t, C1, viewer=LOCAL)


def test_a_rotation_that_a_deletion_waits_for_is_kept(overlap: Overlap, desk: Desk) -> None:
    lease = started(desk).lease
    opened, gone = overlap(lambda t: acting.rotate(t, lease, acting.expected(t)), delete)
    assert gone is True
    assert desk.do(bring_back).head == opened.id


def test_a_new_owner_that_a_deletion_waits_for_cannot_write_after_its_undoing(
    overlap: Overlap, desk: Desk
) -> None:
    acting_as = started(desk)
    desk.world.alive.discard(acting_as.lease.owner)
    begun, _ = overlap(lambda t: acting.begin(t, owner=acting.OTHER, turn="trn_2"), delete)
    desk.do(bring_back)
    desk.do(acting.accept, message("inb_2"))
    again = desk.do(acting.begin, turn="trn_3")
    assert again.lease.fence > begun.lease.fence


def test_a_title_that_a_deletion_waits_for_is_kept(overlap: Overlap, desk: Desk) -> None:
    started(desk)
    overlap(lambda t: conversations.rename_conversation(t, C1, "Crete"), delete)
    assert desk.do(bring_back).title == "Crete"


def test_a_title_that_comes_after_a_deletion_stays_free(overlap: Overlap, desk: Desk) -> None:
    started(desk)
    _, refused = overlap(delete, lambda t: conversations.rename_conversation(t, C1, "Crete"))
    assert isinstance(refused, NotFound)
    desk.do(acting.accept, message("inb_2"), new="cnv_2")
    assert desk.do(conversations.rename_conversation, C2, "Crete")


def test_of_two_undoings_one_finds_nothing_to_undo(overlap: Overlap, desk: Desk) -> None:
    started(desk)
    desk.do(delete)
    first, second = overlap(bring_back, bring_back)
    assert isinstance(first, Conversation)
    assert isinstance(second, NotFound)


def test_an_undoing_that_waits_for_the_end_of_its_time_finds_nothing_to_undo(
    overlap: Overlap, desk: Desk
) -> None:
    started(desk)
    desk.do(delete)
    ended, refused = overlap(lambda t: undelete.end_grace_period(t, C1, at_once=True), bring_back)
    assert ended is True
    assert isinstance(refused, NotFound)


def test_the_end_of_the_time_that_waits_for_an_undoing_ends_nothing(
    overlap: Overlap, desk: Desk
) -> None:
    started(desk)
    desk.do(delete)
    back, ended = overlap(bring_back, lambda t: undelete.end_grace_period(t, C1, at_once=True))
    assert isinstance(back, Conversation)
    assert ended is False


def test_a_deletion_that_can_be_undone_is_a_separate_state(overlap: Overlap, desk: Desk) -> None:
    started(desk)
    desk.do(delete)
    head = desk.do(undelete.list_deleted_conversations, viewer=LOCAL)[0].entries
    overlap(bring_back, delete)
    back = desk.do(undelete.list_deleted_conversations, viewer=LOCAL)
    assert [each.entries for each in back] in ([head], [])


def _two(desk: Desk) -> None:
    started(desk)
    desk.do(acting.accept, message("inb_2"), OTHER_ROUTE, new="cnv_2")


def test_a_route_that_is_moved_to_what_is_being_deleted_leads_nowhere_after_it(
    overlap: Overlap, desk: Desk
) -> None:
    _two(desk)
    before, _ = overlap(lambda t: conversations.move_route(t, OTHER_ROUTE.key, C1), delete)
    assert before == C2
    accepted = desk.do(acting.accept, message("inb_3"), OTHER_ROUTE, new="cnv_3")
    assert accepted.conversation_id == "cnv_3"


def test_a_route_is_not_moved_to_what_was_deleted_meanwhile(overlap: Overlap, desk: Desk) -> None:
    _two(desk)
    _, refused = overlap(delete, lambda t: conversations.move_route(t, OTHER_ROUTE.key, C1))
    assert isinstance(refused, NotFound)
    assert desk.do(conversations.resolve_conversation, OTHER_ROUTE.key) == C2


def _notice_being_sent(desk: Desk) -> Delivery:
    """The notice about a deletion, claimed by its channel; nothing of it is sent yet."""
    desk.world.alive.add(ME)
    desk.do(acting.accept, message("inb_1"), CHAT)
    assert desk.do(deletion.mark_deleted, C1, notice="It was deleted.")
    found = desk.do(deliveries.claim_next_delivery, CHAT.key, owner=ME, claim="op_1")
    assert found is not None
    return found


class _Interrupted(SimTx):
    """A transaction during which something else is committed, right before one statement."""

    def __init__(self, real: Tx, desk: Desk, before: str, other: Callable[[], object]) -> None:
        super().__init__(real, desk.world)
        self._before, self._other = before, other

    def execute(self, sql: LiteralString, *args: Value) -> int:
        if self._before in sql:
            self._other()
        return super().execute(sql, *args)


@pytest.mark.parametrize(
    "desk", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
def test_a_notice_that_arrives_while_its_conversation_is_removed_breaks_nothing(
    desk: Desk, rival: Desk
) -> None:
    """SQLite has one writer: nothing is committed between two statements of another."""
    notice = _notice_being_sent(desk).id
    rival.do(deliveries.store_chunks, notice, ["It was deleted."])
    rival.do(deliveries.start_chunk, notice, 0, owner=ME)

    def arrive() -> None:
        rival.do(deliveries.complete_chunk, notice, 0, "9", owner=ME)

    desk.do(
        lambda t: deletion.delete_slice(_Interrupted(t, desk, "DELETE FROM delivery\n", arrive), C1)
    )
    while desk.do(deletion.delete_slice, C1):
        pass
    assert {row for rows in desk.snapshot().values() for row in rows if C1 in row} == set(
        desk.snapshot()["tombstone"]
    )


def test_no_parts_are_stored_of_a_message_that_is_deleted_or_dropped(desk: Desk) -> None:
    notice = _notice_being_sent(desk).id
    desk.do(deliveries.drop_delivery, notice, why="unwanted")
    with pytest.raises(InvalidTransition):
        desk.do(deliveries.store_chunks, notice, ["It was deleted."])
    while desk.do(deletion.delete_slice, C1):
        pass
    with pytest.raises(NotFound):
        desk.do(deliveries.store_chunks, notice, ["It was deleted."])
