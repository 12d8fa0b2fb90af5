"""What there is to do: conversations with something due that no living owner is at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.turn import TurnState

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, OwnerId
    from clew.store.contract import Tx

_OPEN = """
    SELECT i.conversation_id, min(i.due_at), l.owner, l.expires_at
    FROM inbox i JOIN lease l ON l.conversation_id = i.conversation_id
    WHERE i.outcome IS NULL GROUP BY i.conversation_id, l.owner, l.expires_at
"""
_UNFINISHED = """
    SELECT t.conversation_id, t.state, t.stop, l.owner, l.expires_at,
           (SELECT count(*) FROM approval a WHERE a.turn_id = t.id AND a.state = 'open')
    FROM turn t JOIN lease l ON l.conversation_id = t.conversation_id
    WHERE t.state <> 'done'
"""


def due_work(t: Tx, *, me: OwnerId) -> dict[ConversationId, int]:
    """
    Conversations that ``me`` could begin on, each with the time (ms) when.

    Left out is what another living owner holds, and turns that only wait for approvals.
    """
    due: dict[ConversationId, int] = {}
    waiting: set[ConversationId] = set()
    for conversation, state, stop, owner, expires_at, questions in t.all(_UNFINISHED):
        if state == TurnState.WAITING.value and stop is None and questions:
            waiting.add(conversation)
        elif _free(t, owner, expires_at, me):
            due[conversation] = 0
    for conversation, due_at, owner, expires_at in t.all(_OPEN):
        known = conversation in due or conversation in waiting
        if not known and _free(t, owner, expires_at, me):
            due[conversation] = due_at
    return due


def is_due(t: Tx, conversation: ConversationId) -> int | None:
    """When there is something to do in one conversation (ms); ``None`` if there is nothing."""
    row = t.one(
        "SELECT min(due_at) FROM inbox WHERE conversation_id = $1 AND outcome IS NULL", conversation
    )
    assert row is not None
    if row[0] is not None:
        return row[0]
    unfinished = t.one(
        "SELECT id FROM turn WHERE conversation_id = $1 AND state <> 'done'", conversation
    )
    return None if unfinished is None else 0


def _free(t: Tx, owner: str | None, expires_at: int | None, me: OwnerId) -> bool:
    if owner is None or owner == me:
        return True
    return (expires_at or 0) <= t.now or not t.alive(owner)
