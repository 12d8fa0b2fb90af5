"""Contexts: every tool call sent to the model has exactly one result, right after it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, LiteralString

from clew.core.ids import ConversationId
from clew.store.checks.check import MAX_VIOLATIONS, Check, Violation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.store.contract import Tx

# The ranges of the log in a head's context. Where neighbours within a range do not pair, the
# whole context is checked: the result may be a literal in the base.
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


def _find_unpaired_calls(t: Tx, again: Violation | None = None) -> list[Violation]:
    if again is not None:
        return [] if again.conversation is None else _check_pairs(t, again.conversation)
    return confirm_unpaired(t, t.fetch_column(_SUSPECTS))


def find_unpaired_after_walk(t: Tx, unpaired: Iterable[str]) -> list[Violation]:
    """
    Find unpaired calls like ``CONTEXT.find``, using the result of a walk over the log.

    If all neighbours in the log pair, those in a context do, except at the ends of its
    ranges and beside literals in its base.
    """
    bases = t.fetch_column(
        "SELECT DISTINCT conversation_id FROM head h WHERE EXISTS ("
        "SELECT 1 FROM base_item b WHERE b.session_id = h.session_id)"
    )
    return confirm_unpaired(t, {*unpaired, *bases})


def confirm_unpaired(t: Tx, conversations: Iterable[str]) -> list[Violation]:
    """Return what is actually wrong in the suspected conversations."""
    found: list[Violation] = []
    for conversation in conversations:
        found += _check_pairs(t, ConversationId(conversation))
        if len(found) >= MAX_VIOLATIONS:
            break
    return found


def _check_pairs(t: Tx, conversation: ConversationId) -> list[Violation]:
    found: list[Violation] = []
    asked: list[str] = []
    for _, seq, calls, answers, literal in t.fetch_all(_CONTEXT, conversation):
        if literal is None:
            calls, answers = json.loads(calls), json.loads(answers)
        else:
            calls, answers = _parse_literal_calls(literal)
        if answers != asked:
            found.append(_unpaired_violation(conversation, seq, asked, answers))
        asked = calls
    return found


def _parse_literal_calls(message: str) -> tuple[list[str], list[str]]:
    """Return the calls that a literal message of a base requests and answers."""
    parts: list[dict[str, Any]] = json.loads(message)["parts"]
    calls = [part["tool_call_id"] for part in parts if part["part_kind"] == "tool-call"]
    answered = [
        part["tool_call_id"]
        for part in parts
        if part["part_kind"] in ("tool-return", "builtin-tool-return")
    ]
    return calls, answered


def _unpaired_violation(
    conversation: ConversationId, seq: int, asked: list[str], answers: list[str]
) -> Violation:
    return Violation(
        conversation=conversation,
        seq=seq or None,
        subject=conversation,
        repairable=False,
        detail=f"the model asked for calls {asked}, and what follows answers {answers}",
    )


CONTEXT = Check(
    name="call-answered",
    description="In a head's context each call has one result, right after it; the last may wait.",
    find=_find_unpaired_calls,
    manual_fix="go back to before that call with clew sessions rewind",
)
CHECKS: tuple[Check, ...] = (CONTEXT,)
