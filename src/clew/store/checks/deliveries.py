"""Deliveries: their entry is stored, and their sender is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.delivery import DeliveryState
from clew.core.ids import DeliveryId
from clew.store.checks.check import Check, Violation, sql_check
from clew.store.transactions.deliveries import set_delivery_state

if TYPE_CHECKING:
    from clew.store.contract import Tx


def _mark_unknown(t: Tx, found: Violation) -> None:
    set_delivery_state(t, DeliveryId(found.subject), DeliveryState.UNKNOWN)


CHECKS: tuple[Check, ...] = (
    sql_check(
        "delivery-entry",
        "A delivery carries an entry that was stored.",
        """
        SELECT d.conversation_id, d.seq, d.id, 0,
               'delivery ' || d.id || ' carries entry ' || d.seq || ', the last entry is '
               || l.last_seq
        FROM delivery d JOIN lease l ON l.conversation_id = d.conversation_id
        WHERE (d.seq > l.last_seq OR d.seq < 1) {d.conversation_id}
        """,
        decide="restore a backup that has the entry; its text is in the delivery too",
    ),
    sql_check(
        "delivery-turn",
        "A delivery that names a turn names one of its conversation.",
        """
        SELECT d.conversation_id, d.seq, d.id, 1,
               'delivery ' || d.id || ' names turn ' || d.turn_id || ', which is not there'
        FROM delivery d JOIN lease l ON l.conversation_id = d.conversation_id
        WHERE d.turn_id IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM turn t WHERE t.id = d.turn_id AND t.conversation_id = d.conversation_id
        ) {d.conversation_id}
        """,
        repair="have {subject} name no turn; it is sent all the same",
        mend=lambda t, found: t.execute(
            "UPDATE delivery SET turn_id = NULL WHERE id = $1", found.subject
        ),
        refused=True,
    ),
    sql_check(
        "delivery-owner",
        "A delivery that is being sent names who sends it.",
        """
        SELECT d.conversation_id, d.seq, d.id, 1,
               'delivery ' || d.id || ' is being sent by nobody'
        FROM delivery d WHERE d.state = 'sending' AND d.owner IS NULL {d.conversation_id}
        """,
        repair="take it as unknown whether {subject} was sent, as after the death of its sender",
        mend=_mark_unknown,
        refused=True,
    ),
    sql_check(
        "part-state",
        "A part is being sent only while its delivery is.",
        """
        SELECT d.conversation_id, d.seq, d.id, 1,
               'a part of delivery ' || d.id || ' is being sent, the delivery itself is ' || d.state
        FROM delivery d
        WHERE d.state IN ('pending', 'unknown', 'failed') AND EXISTS (
            SELECT 1 FROM delivery_chunk k WHERE k.delivery_id = d.id AND k.state = 'sending'
        ) {d.conversation_id}
        """,
        repair="have the part share the state of {subject}",
        mend=lambda t, found: t.execute(
            """
            UPDATE delivery_chunk SET state = (SELECT d.state FROM delivery d WHERE d.id = $1)
            WHERE delivery_id = $1 AND state = 'sending'
            """,
            found.subject,
        ),
    ),
    sql_check(
        "part-delivered",
        "A part that has a platform's id was delivered.",
        """
        SELECT d.conversation_id, d.seq, d.id, 1,
               'a part of delivery ' || d.id || ' has a platform''s id and is not delivered'
        FROM delivery d
        WHERE EXISTS (
            SELECT 1 FROM delivery_chunk k
            WHERE k.delivery_id = d.id AND k.platform_id IS NOT NULL AND k.state <> 'delivered'
        ) {d.conversation_id}
        """,
        repair="take the part of {subject} as delivered: the platform has given it an id",
        mend=lambda t, found: t.execute(
            """
            UPDATE delivery_chunk SET state = 'delivered'
            WHERE delivery_id = $1 AND platform_id IS NOT NULL
            """,
            found.subject,
        ),
        refused=True,
    ),
)
