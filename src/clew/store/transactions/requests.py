"""Requests: where in the log a model was asked, and what it was sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.base import extend_base
from clew.core.ids import TurnId
from clew.store.transactions import rows
from clew.store.transactions.context import Context, materialised
from clew.store.transactions.sessions import get_base, get_session
from clew.store.transactions.stops import get_turn

if TYPE_CHECKING:
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """One request of a turn, by what came of it."""

    #: Counts from 1 over all runs of the turn; a request that failed is made again as the same.
    step: int
    #: A response, or an attempt that failed.
    entry: Entry


def askings(t: Tx, turn: TurnId) -> list[Asking]:
    """
    Every request of a turn of which something is stored, in order.

    :raises NotFound: if there is no such turn
    """
    found = get_turn(t, turn)
    rows_found = t.all(
        f"""
        {rows.ENTRY}
        WHERE conversation_id = $1 AND seq >= $2 AND turn_id = $3
              AND (kind = 'attempt' OR role = 'assistant')
        ORDER BY seq
        """,
        found.conversation_id,
        found.first_seq,
        turn,
    )
    made: list[Asking] = []
    step = 1
    for row in rows_found:
        entry = rows.entry(row)
        made.append(Asking(step=step, entry=entry))
        step += int(entry.role is not None)
    return made


def turn_number(t: Tx, conversation: ConversationId, number: int) -> TurnId | None:
    """The turn of this number, from 1, in the order in which they began."""
    row = t.one(
        "SELECT id FROM turn WHERE conversation_id = $1 ORDER BY first_seq LIMIT 1 OFFSET $2",
        conversation,
        number - 1,
    )
    return None if row is None else TurnId(row[0])


def context_before(t: Tx, entry: Entry) -> Context:
    """The context of an entry's session as it was when the entry was appended."""
    session = get_session(t, entry.session_id)
    last = entry.seq - 1
    base = extend_base(get_base(t, session.id), opened_seq=session.opened_seq, last_seq=last)
    return Context(
        session=session,
        last_seq=last,
        messages=materialised(t, entry.conversation_id, base),
    )
