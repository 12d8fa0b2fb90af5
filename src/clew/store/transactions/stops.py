"""Turns as anybody may see them and ask them to stop, without holding the lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.turn import TurnState
from clew.errors import NotFound
from clew.store.transactions import rows

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionId, TurnId
    from clew.core.turn import StopRequest, Turn
    from clew.store.contract import Tx


def get_turn(t: Tx, turn: TurnId) -> Turn:
    """:raises NotFound: if there is no such turn"""
    row = t.one(f"{rows.TURN} WHERE id = $1", turn)
    if row is None:
        raise NotFound("turn", turn)
    return rows.turn(row)


def unfinished_turn(t: Tx, conversation: ConversationId) -> Turn | None:
    """The running or waiting turn of a conversation: there is one at most."""
    row = t.one(f"{rows.TURN} WHERE conversation_id = $1 AND state <> 'done'", conversation)
    return None if row is None else rows.turn(row)


def last_done_turn(t: Tx, conversation: ConversationId) -> Turn | None:
    """The newest turn of a conversation that has its outcome."""
    row = t.one(
        f"""
        {rows.TURN} WHERE conversation_id = $1 AND state = 'done'
        ORDER BY first_seq DESC LIMIT 1
        """,
        conversation,
    )
    return None if row is None else rows.turn(row)


def done_turns(t: Tx, conversation: ConversationId, *, after: int) -> list[Turn]:
    """The turns that have their outcome and began after the entry ``after``, in order."""
    found = t.all(
        f"""
        {rows.TURN} WHERE conversation_id = $1 AND state = 'done' AND first_seq > $2
        ORDER BY first_seq
        """,
        conversation,
        after,
    )
    return [rows.turn(row) for row in found]


def unfinished_turns(t: Tx) -> list[Turn]:
    """Every running or waiting turn, oldest first."""
    found = t.all(f"{rows.TURN} WHERE state <> 'done' ORDER BY started_at, id")
    return [rows.turn(row) for row in found]


def request_stop(t: Tx, turn: TurnId, stop: StopRequest) -> bool:
    """
    Ask whoever runs the turn to stop it; ``False`` if it is done or was asked before.

    Needs no lease: its owner sees the request at the next wake-up.
    """
    row = t.one(
        """
        UPDATE turn SET stop = $2 WHERE id = $1 AND state <> $3 AND stop IS NULL
        RETURNING conversation_id
        """,
        turn,
        stop.value,
        TurnState.DONE.value,
    )
    if row is None:
        return False
    t.wake(row[0])
    return True


def is_first_turn(t: Tx, turn: Turn, session: SessionId) -> bool:
    """Return whether no turn before this one had an entry in the session."""
    earlier = t.one(
        """
        SELECT 1 FROM entry
        WHERE conversation_id = $1 AND seq < $2 AND session_id = $3 AND turn_id IS NOT NULL
          AND seq > (SELECT opened_seq FROM session WHERE id = $3)
        LIMIT 1
        """,
        turn.conversation_id,
        turn.first_seq,
        session,
    )
    return earlier is None


def said_in(t: Tx, turn: Turn) -> list[str]:
    """Return what people said in a turn, in order."""
    found = t.all(
        """
        SELECT text FROM entry
        WHERE conversation_id = $1 AND seq >= $2 AND turn_id = $3 AND role = 'user'
        ORDER BY seq
        """,
        turn.conversation_id,
        turn.first_seq,
        turn.id,
    )
    return [row[0] for row in found]
