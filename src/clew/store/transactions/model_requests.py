"""Model requests of a turn: their results in the log, and the context they were sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.session_base import extend_base
from clew.record import Record
from clew.store.transactions import rows
from clew.store.transactions.context import Context, expand_base
from clew.store.transactions.sessions import get_base, get_session
from clew.store.transactions.turn_queries import get_turn

if TYPE_CHECKING:
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId, TurnId
    from clew.store.contract import Tx


class TurnRequest(Record):
    """One model request of a turn, identified by its stored result."""

    #: Counts from 1 over all runs of the turn; the repetition of a failed request has its number.
    step: int
    #: The response, or the failed attempt.
    entry: Entry


def list_turn_requests(t: Tx, turn: TurnId) -> list[TurnRequest]:
    """
    Return every request of a turn that has a stored result, in order.

    :raises NotFound: if there is no such turn
    """
    found = get_turn(t, turn)
    results = rows.ENTRY.fetch_all(
        t,
        """
        WHERE conversation_id = $1 AND seq >= $2 AND turn_id = $3
              AND (kind = 'attempt' OR role = 'assistant')
        ORDER BY seq
        """,
        found.conversation_id,
        found.first_seq,
        turn,
    )
    made: list[TurnRequest] = []
    step = 1
    for entry in results:
        made.append(TurnRequest(step=step, entry=entry))
        step += int(entry.role is not None)
    return made


def find_turn_by_number(t: Tx, conversation: ConversationId, number: int) -> TurnId | None:
    """Return the turn with this number, counted from 1 in order of their start."""
    return t.fetch_value(
        "SELECT id FROM turn WHERE conversation_id = $1 ORDER BY first_seq LIMIT 1 OFFSET $2",
        conversation,
        number - 1,
    )


def read_context_before(t: Tx, entry: Entry) -> Context:
    """Return the context of an entry's session just before the entry was appended."""
    session = get_session(t, entry.session_id)
    last = entry.seq - 1
    base = extend_base(get_base(t, session.id), opened_seq=session.opened_seq, last_seq=last)
    return Context(
        session=session,
        last_seq=last,
        messages=expand_base(t, entry.conversation_id, base),
    )
