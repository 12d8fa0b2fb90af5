"""S1.11 to S1.18: what maintenance closes, and what it leaves alone."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest

from clew.core.double_text import DoubleText
from clew.core.ids import ClientId, ConversationId, InboxId, OwnerId, SessionId, TurnId
from clew.core.inbox import Input
from clew.core.route import local_route
from clew.core.scope import LOCAL
from clew.core.session import COMPRESSION, ORPHANED_COMPRESSION, USER_EXIT, Head
from clew.engine.turn_log import compose
from clew.store.transactions import (
    clients,
    conversations,
    entries,
    inbox,
    leases,
    maintenance,
    sessions,
    turns,
)
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import Proposals

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.session import Session
    from clew.store.contract import Tx
    from tests.contract.desk import Desk

TALK = local_route("talk")
TALKS = ConversationId("cnv_talk")
FIRST, SECOND = SessionId("20260101_000000_aaaaaa"), SessionId("20260101_000001_bbbbbb")
ME = OwnerId("own_me")
OLD = timedelta(seconds=800_000)


class Left(NamedTuple):
    closed: int
    head: Session


def _talk(t: Tx) -> None:
    """A conversation that nothing leads to, with two messages in its first session."""
    conversations.open_conversation(t, TALKS, scope=LOCAL, session_ids=Proposals(FIRST))
    fill(t, TALKS, 2, size=10)


def _continue(t: Tx, *, reason: str = COMPRESSION, messages: int = 2) -> None:
    """Go on in a second session, after the first has ended for ``reason``."""
    lease = leases.acquire(t, TALKS, owner=ME).lease
    sessions.rotate(
        t,
        lease,
        operation="op_continue",
        expected=Head(session=FIRST, last_seq=2),
        base=(),
        reason=reason,
        session_ids=Proposals(SECOND),
    )
    leases.release(t, lease)
    if messages:
        fill(t, TALKS, messages, size=10)


def _after(desk: Desk, age: timedelta) -> Left:
    """What is left of the conversation when maintenance comes by after so long."""
    desk.world.now += age // timedelta(milliseconds=1)
    before = desk.do(entries.entries_after, TALKS, after=0, limit=100)
    count = desk.do(maintenance.finalize_orphaned_compression_sessions)
    assert desk.do(entries.entries_after, TALKS, after=0, limit=100) == before
    return Left(count, desk.do(sessions.get_head, TALKS))


def test_s1_11_old_unfinished_continuation_is_closed(desk: Desk) -> None:
    desk.do(_talk)
    desk.do(_continue)
    left = _after(desk, OLD)
    assert left.closed == 1
    assert left.head.id == SECOND
    assert left.head.end_reason == ORPHANED_COMPRESSION == "orphaned_compression"
    # Once.
    assert desk.do(maintenance.finalize_orphaned_compression_sessions) == 0


def _route(t: Tx) -> None:
    conversations.claim_route(t, TALK.key, TALKS)


def _input(t: Tx) -> None:
    inbox.accept(
        t,
        Input(id=InboxId("inb_waits"), text="wait", double_text=DoubleText.QUEUE),
        target=TALKS,
        new_conversation=TALKS,
        session_ids=Proposals(),
    )


def _turn(t: Tx) -> None:
    _input(t)
    begun = turns.begin(
        t, TALKS, owner=ME, turn=TurnId("trn_1"), compose=compose, session_ids=Proposals()
    )
    assert begun is not None
    leases.release(t, begun.lease)


def _client(t: Tx) -> None:
    clients.attach(t, ClientId("cli_1"), TALKS, owner=ME, front="tui")


def _delivery(t: Tx) -> None:
    t.run(
        """
        INSERT INTO delivery (id, conversation_id, route, kind, body, state, due_at, created_at,
                              updated_at)
        VALUES ('dlv_1', $1, 'agent:main:telegram:dm:1', 'notice', 'hi', 'pending', 0, 0, 0)
        """,
        TALKS,
    )


@pytest.mark.parametrize("used_by", [_route, _input, _turn, _client, _delivery])
def test_s1_11_whatever_would_come_back_to_a_continuation_keeps_it(
    used_by: Callable[[Tx], None], desk: Desk
) -> None:
    desk.world.alive.add(ME)
    desk.do(_talk)
    desk.do(_continue)
    desk.do(used_by)
    left = _after(desk, OLD)
    assert (left.closed, left.head.open) == (0, True)


def test_s1_11_a_client_of_a_dead_process_keeps_nothing(desk: Desk) -> None:
    desk.do(_talk)
    desk.do(_continue)
    desk.do(_client)
    assert _after(desk, OLD).closed == 1


def test_s1_12_a_session_without_predecessor_is_left_alone(desk: Desk) -> None:
    desk.do(_talk)
    left = _after(desk, OLD)
    assert (left.closed, left.head.open) == (0, True)


def test_s1_13_a_continuation_younger_than_seven_days_is_left_alone(desk: Desk) -> None:
    desk.do(_talk)
    desk.do(_continue)
    left = _after(desk, timedelta(days=7) - timedelta(minutes=1))
    assert (left.closed, left.head.open) == (0, True)
    assert _after(desk, timedelta(minutes=2)).closed == 1


def _end(t: Tx) -> None:
    sessions.end_session(t, SECOND, USER_EXIT)


def test_s1_14_a_continuation_that_has_ended_is_left_alone(desk: Desk) -> None:
    desk.do(_talk)
    desk.do(_continue)
    desk.do(_end)
    left = _after(desk, OLD)
    assert (left.closed, left.head.end_reason) == (0, "user_exit")
    assert desk.do(maintenance.orphaned_compression_sessions) == []


def test_s1_15_a_continuation_of_a_session_that_ended_otherwise_is_left_alone(desk: Desk) -> None:
    desk.do(_talk)
    desk.do(_continue, reason=USER_EXIT)
    left = _after(desk, OLD)
    assert (left.closed, left.head.open) == (0, True)


def test_s1_16_a_continuation_without_messages_is_left_alone(desk: Desk) -> None:
    desk.do(_talk)
    desk.do(_continue, messages=0)
    left = _after(desk, OLD)
    assert (left.closed, left.head.open) == (0, True)


def test_s1_16_empty_ghosts_have_their_own_pruning(desk: Desk) -> None:
    ghost = ConversationId("cnv_ghost")
    desk.do(_talk)
    desk.do(
        conversations.open_conversation, ghost, scope=LOCAL, session_ids=Proposals("sess-ghost")
    )
    desk.world.now += OLD // timedelta(milliseconds=1)
    assert desk.do(maintenance.empty_ghost_sessions) == [ghost]
    assert desk.do(maintenance.prune_empty_ghost_sessions) == 1
    assert desk.do(maintenance.prune_empty_ghost_sessions) == 0
    assert desk.do(sessions.get_head, TALKS).open


def test_s1_17_a_title_does_not_protect_an_orphan(desk: Desk) -> None:
    desk.do(_talk)
    desk.do(_continue)
    desk.do(conversations.rename, TALKS, "Chat (2)")
    assert _after(desk, OLD).closed == 1


def test_s1_18_a_head_in_daily_use_is_left_alone_however_long_ago_it_was_compacted(
    desk: Desk,
) -> None:
    desk.do(_talk)
    desk.do(_continue)
    desk.do(_route)
    left = _after(desk, timedelta(days=8))
    assert (left.closed, left.head.open) == (0, True)
