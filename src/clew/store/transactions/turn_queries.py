"""Turn queries and stop requests, which need no lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.entry import CAUSED_PATTERN
from clew.core.turn import TurnState
from clew.errors import NotFound
from clew.store.transactions import rows

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionId, TurnId
    from clew.core.turn import StopRequest, Turn
    from clew.store.contract import Tx


def get_turn(t: Tx, turn: TurnId) -> Turn:
    """
    Return a turn.

    :raises NotFound: if there is no such turn
    """
    found = rows.TURN.fetch_one(t, "WHERE id = $1", turn)
    if found is None:
        raise NotFound("turn", turn)
    return found


def find_unfinished_turn(t: Tx, conversation: ConversationId) -> Turn | None:
    """Return the running or waiting turn of a conversation; there is at most one."""
    return rows.TURN.fetch_one(t, "WHERE conversation_id = $1 AND state <> 'done'", conversation)


def find_last_done_turn(t: Tx, conversation: ConversationId) -> Turn | None:
    """Return the newest turn of a conversation that has an outcome."""
    return rows.TURN.fetch_one(
        t,
        """
        WHERE conversation_id = $1 AND state = 'done'
        ORDER BY first_seq DESC LIMIT 1
        """,
        conversation,
    )


def list_done_turns(t: Tx, conversation: ConversationId, *, after: int) -> list[Turn]:
    """Return the turns with an outcome that began after entry ``after``, in order."""
    return rows.TURN.fetch_all(
        t,
        """
        WHERE conversation_id = $1 AND state = 'done' AND first_seq > $2
        ORDER BY first_seq
        """,
        conversation,
        after,
    )


def find_newest_trace(t: Tx, conversation: ConversationId) -> str | None:
    """Return the trace of a conversation's newest turn, if it is traced."""
    return t.fetch_value(
        "SELECT trace_id FROM turn WHERE conversation_id = $1 ORDER BY first_seq DESC LIMIT 1",
        conversation,
    )


def read_traces(t: Tx, conversation: ConversationId, *, first: int, last: int) -> dict[TurnId, str]:
    """Return the traces of the turns that have entries in a span."""
    return t.fetch_map(
        """
        SELECT id, trace_id FROM turn
        WHERE conversation_id = $1 AND trace_id IS NOT NULL AND id IN (
            SELECT turn_id FROM entry WHERE conversation_id = $1 AND seq BETWEEN $2 AND $3
        )
        """,
        conversation,
        first,
        last,
    )


def list_unfinished_turns(t: Tx) -> list[Turn]:
    """Return every running or waiting turn, oldest first."""
    return rows.TURN.fetch_all(t, "WHERE state <> 'done' ORDER BY started_at, id")


def request_stop(t: Tx, turn: TurnId, stop: StopRequest) -> bool:
    """
    Ask the owner of a turn to stop it; ``False`` if it is done or was asked before.

    Needs no lease: the owner sees the request at the next wake-up.
    """
    conversation = t.fetch_value(
        """
        UPDATE turn SET stop = $2 WHERE id = $1 AND state <> $3 AND stop IS NULL
        RETURNING conversation_id
        """,
        turn,
        stop.value,
        TurnState.DONE.value,
    )
    if conversation is not None:
        t.notify(conversation)
    return conversation is not None


def is_first_turn(t: Tx, turn: Turn, session: SessionId) -> bool:
    """Return whether no turn before this one had an entry in the session."""
    return not t.exists(
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


def read_user_texts(t: Tx, turn: Turn) -> list[str]:
    """Return the texts of people in a turn, in order."""
    return t.fetch_column(
        """
        SELECT text FROM entry
        WHERE conversation_id = $1 AND seq >= $2 AND turn_id = $3 AND role = 'user'
              AND message NOT LIKE $4
        ORDER BY seq
        """,
        turn.conversation_id,
        turn.first_seq,
        turn.id,
        CAUSED_PATTERN,
    )
