"""Contexts: what the model is sent has each tool call with its one result, right after it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, LiteralString

from clew.core.ids import ConversationId
from clew.store.checks.check import MOST, Check, Found

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.store.contract import Tx

# The stretches of the log that a head's context is made of. Where neighbours within a stretch do
# not pair, the whole context is looked at: the result may stand in the base as it is.
_SUSPECTS: LiteralString = """
    SELECT DISTINCT x.conversation_id FROM (
        SELECT p.conversation_id FROM (
            SELECT h.conversation_id, b.first_seq AS first, b.last_seq AS last
            FROM head h JOIN base_item b ON b.session_id = h.session_id
            WHERE b.first_seq IS NOT NULL
            UNION ALL
            SELECT h.conversation_id, s.opened_seq + 1, l.last_seq
            FROM head h JOIN session s ON s.id = h.session_id
            JOIN lease l ON l.conversation_id = h.conversation_id
        ) p JOIN entry e
          ON e.conversation_id = p.conversation_id AND e.seq BETWEEN p.first AND p.last
        WHERE e.kind = 'message' AND (
            (e.calls <> '[]' AND e.calls <> COALESCE((
                SELECT n.answers FROM entry n
                WHERE n.conversation_id = e.conversation_id AND n.kind = 'message'
                  AND n.seq > e.seq AND n.seq <= p.last
                ORDER BY n.seq LIMIT 1), ''))
            OR (e.answers <> '[]' AND e.answers <> COALESCE((
                SELECT n.calls FROM entry n
                WHERE n.conversation_id = e.conversation_id AND n.kind = 'message'
                  AND n.seq < e.seq AND n.seq >= p.first
                ORDER BY n.seq DESC LIMIT 1), '')))
        UNION ALL
        SELECT h.conversation_id FROM head h JOIN base_item b ON b.session_id = h.session_id
        WHERE b.message LIKE '%"tool-%'
    ) x
"""
_CONTEXT: LiteralString = """
    SELECT b.position, e.seq, e.calls, e.answers, NULL
    FROM head h JOIN base_item b ON b.session_id = h.session_id JOIN entry e
      ON e.conversation_id = h.conversation_id AND e.seq BETWEEN b.first_seq AND b.last_seq
    WHERE h.conversation_id = $1 AND e.kind = 'message'
    UNION ALL
    SELECT b.position, 0, NULL, NULL, b.message
    FROM head h JOIN base_item b ON b.session_id = h.session_id
    WHERE h.conversation_id = $1 AND b.format = 'pydantic-ai/2'
    UNION ALL
    SELECT 1000000, e.seq, e.calls, e.answers, NULL
    FROM head h JOIN session s ON s.id = h.session_id JOIN entry e
      ON e.conversation_id = h.conversation_id AND e.seq > s.opened_seq
    WHERE h.conversation_id = $1 AND e.kind = 'message'
    ORDER BY 1, 2
"""


def _look(t: Tx, again: Found | None = None) -> list[Found]:
    if again is not None:
        return [] if again.conversation is None else _pairs(t, again.conversation)
    return confirmed(t, (row[0] for row in t.all(_SUSPECTS)))


def of_walk(t: Tx, unpaired: Iterable[str]) -> list[Found]:
    """
    As ``CONTEXT.look``, by what a walk over the log has seen.

    Where all neighbours in the log pair, those in a context do, but at the ends of its ranges and
    beside what stands in its base as it is.
    """
    bases = t.all(
        "SELECT DISTINCT conversation_id FROM head h WHERE EXISTS ("
        "SELECT 1 FROM base_item b WHERE b.session_id = h.session_id)"
    )
    return confirmed(t, {*unpaired, *(row[0] for row in bases)})


def confirmed(t: Tx, conversations: Iterable[str]) -> list[Found]:
    """What is wrong in those that looked so."""
    found: list[Found] = []
    for conversation in conversations:
        found += _pairs(t, ConversationId(conversation))
        if len(found) >= MOST:
            break
    return found


def _pairs(t: Tx, conversation: ConversationId) -> list[Found]:
    found: list[Found] = []
    asked: list[str] = []
    for _, seq, calls, answers, literal in t.all(_CONTEXT, conversation):
        if literal is None:
            calls, answers = json.loads(calls), json.loads(answers)
        else:
            calls, answers = _of_literal(literal)
        if answers != asked:
            found.append(_unpaired(conversation, seq, asked, answers))
        asked = calls
    return found


def _of_literal(message: str) -> tuple[list[str], list[str]]:
    """What a message asks for and answers that stands in a base as it is: a shortened result."""
    parts: list[dict[str, Any]] = json.loads(message)["parts"]
    calls = [part["tool_call_id"] for part in parts if part["part_kind"] == "tool-call"]
    answered = [
        part["tool_call_id"]
        for part in parts
        if part["part_kind"] in ("tool-return", "builtin-tool-return")
    ]
    return calls, answered


def _unpaired(
    conversation: ConversationId, seq: int, asked: list[str], answers: list[str]
) -> Found:
    return Found(
        conversation=conversation,
        seq=seq or None,
        subject=conversation,
        sure=False,
        detail=f"the model asked for calls {asked}, and what follows answers {answers}",
    )


CONTEXT = Check(
    name="call-answered",
    says="In a head's context each call has one result, right after it; the last may wait.",
    look=_look,
    decide="go back to before that call with clew sessions rewind",
)
CHECKS: tuple[Check, ...] = (CONTEXT,)
