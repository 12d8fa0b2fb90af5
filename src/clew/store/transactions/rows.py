"""Records of the tables: the columns of each, and their conversions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.clock import from_millis
from clew.core.approval import Approval, ApprovalState
from clew.core.call_terms import CallTerms
from clew.core.conversation import Conversation, TitledBy
from clew.core.delivery import Chunk, Delivery, DeliveryKind, DeliveryState
from clew.core.double_text import DoubleText
from clew.core.effect import Effect
from clew.core.entry import Entry, EntryKind, Role
from clew.core.grant import Grant, GrantPattern
from clew.core.inbox import InboxItem, InboxKind, InboxOutcome
from clew.core.journal import CallKey, CallStatus, JournaledCall
from clew.core.lease import Lease
from clew.core.session import Session
from clew.core.session_prefix import load_instructions
from clew.core.turn import StopRequest, Turn, TurnOutcome, TurnState
from clew.store.records import RecordQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import TurnId


def _parse_strings(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))


def _to_journaled_call(*, turn_id: TurnId, step: int, call_id: str, **rest: Any) -> JournaledCall:
    return JournaledCall(key=CallKey(turn_id=turn_id, step=step, call_id=call_id), **rest)


def _to_changed_delivery(*, updated_at: int, **rest: Any) -> tuple[Delivery, int]:
    return Delivery(**rest), updated_at


def to_lease(row: Sequence[Any]) -> Lease:
    """Convert a row of ``conversation_id, owner, fence, expires_at``."""
    conversation, owner, fence, expires_at = row
    return Lease(
        conversation_id=conversation, owner=owner, fence=fence, expires_at=from_millis(expires_at)
    )


CONVERSATION = RecordQuery(
    Conversation,
    """
    SELECT c.id, c.scope, c.title, c.titled_by, c.adhoc, c.origin, c.origin_seq,
           h.session_id AS head, l.last_seq, c.created_at, l.updated_at
    FROM conversation c
    JOIN head h ON h.conversation_id = c.id
    JOIN lease l ON l.conversation_id = c.id
    """,
    {
        "titled_by": TitledBy,
        "adhoc": bool,
        "created_at": from_millis,
        "updated_at": from_millis,
    },
)
SESSION = RecordQuery(
    Session,
    """
    SELECT id, conversation_id, predecessor, opened_at, opened_by, opened_seq, instructions,
           ended_at, end_reason, tools
    FROM session
    """,
    {
        "opened_at": from_millis,
        "ended_at": from_millis,
        "instructions": load_instructions,
    },
)
ENTRY = RecordQuery(
    Entry,
    """
    SELECT conversation_id, seq, id, session_id, turn_id, kind, role, text, calls, answers,
           format, message, created_at, prev_hash, hash
    FROM entry
    """,
    {
        "kind": EntryKind,
        "role": Role,
        "calls": _parse_strings,
        "answers": _parse_strings,
        "created_at": from_millis,
        "prev_hash": bytes,
        "hash": bytes,
    },
)
TURN = RecordQuery(
    Turn,
    """
    SELECT id, conversation_id, state, outcome, error, error_code, stop, first_seq, steps,
           resumes, retries, model, started_at, finished_at, trace_id
    FROM turn
    """,
    {
        "state": TurnState,
        "outcome": TurnOutcome,
        "stop": StopRequest,
        "retries": json.loads,
        "started_at": from_millis,
        "finished_at": from_millis,
    },
)
INBOX = RecordQuery(
    InboxItem,
    """
    SELECT n, id, conversation_id, route, kind, text, payload, double_text, received_at,
           due_at, outcome, turn_id, step, note
    FROM inbox
    """,
    {
        "kind": InboxKind,
        "double_text": DoubleText,
        "received_at": from_millis,
        "due_at": from_millis,
        "outcome": InboxOutcome,
    },
)
JOURNAL = RecordQuery(
    _to_journaled_call,
    """
    SELECT turn_id, step, call_id, position, tool, args, effect, runs, requested, suspended,
           status, format, result, reason, grant_id, untrusted
    FROM journal
    """,
    {"effect": Effect, "status": CallStatus, "suspended": bool, "untrusted": bool},
)
APPROVAL = RecordQuery(
    Approval,
    """
    SELECT id, conversation_id, turn_id, step, call_id, tool, args, route, state, asked_at,
           expires_at, answered_by, note, requested, why, offer, preview, untrusted, terms
    FROM approval
    """,
    {
        "state": ApprovalState,
        "asked_at": from_millis,
        "expires_at": from_millis,
        "offer": GrantPattern.from_json,
        "untrusted": bool,
        "terms": CallTerms.from_json,
    },
)
GRANT = RecordQuery(
    Grant,
    """
    SELECT id, scope, conversation_id, pattern, by, from_approval, created_at, expires_at,
           uses_left, revoked_at
    FROM approval_grant
    """,
    {
        "pattern": GrantPattern.from_json,
        "created_at": from_millis,
        "expires_at": from_millis,
        "revoked_at": from_millis,
    },
)
_DELIVERY_TYPES = {
    "kind": DeliveryKind,
    "state": DeliveryState,
    "due_at": from_millis,
    "created_at": from_millis,
}
DELIVERY = RecordQuery(
    Delivery,
    """
    SELECT id, conversation_id, turn_id, route, seq, kind, body, state, attempts, due_at,
           error, created_at
    FROM delivery
    """,
    _DELIVERY_TYPES,
)
#: Each delivery with the time of its last change, in milliseconds.
CHANGED_DELIVERY = RecordQuery(
    _to_changed_delivery,
    """
    SELECT id, conversation_id, turn_id, route, seq, kind, body, state, attempts, due_at,
           error, created_at, updated_at
    FROM delivery
    """,
    _DELIVERY_TYPES,
)
CHUNK = RecordQuery(
    Chunk,
    "SELECT position, body, state, platform_id, repeated FROM delivery_chunk",
    {"state": DeliveryState},
)
