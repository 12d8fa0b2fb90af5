"""Conversion of database rows: the columns of each table, and the record made of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.approval import Approval, ApprovalState
from clew.core.conversation import Conversation, TitledBy
from clew.core.delivery import Chunk, Delivery, DeliveryKind, DeliveryState
from clew.core.double_text import DoubleText
from clew.core.effect import Effect
from clew.core.entry import Entry, EntryKind, Role
from clew.core.inbox import InboxItem, InboxKind, InboxOutcome
from clew.core.journal import CallKey, CallStatus, JournaledCall
from clew.core.lease import Lease
from clew.core.session import Session
from clew.core.turn import StopRequest, Turn, TurnOutcome, TurnState

if TYPE_CHECKING:
    from datetime import datetime

    from clew.store.contract import Row

CONVERSATION = """
    SELECT c.id, c.scope, c.title, c.titled_by, c.adhoc, c.origin, c.origin_seq,
           h.session_id, l.last_seq, c.created_at, l.updated_at
    FROM conversation c
    JOIN head h ON h.conversation_id = c.id
    JOIN lease l ON l.conversation_id = c.id
"""
SESSION = """
    SELECT id, conversation_id, predecessor, opened_at, opened_by, opened_seq, instructions,
           ended_at, end_reason
    FROM session
"""
ENTRY = """
    SELECT conversation_id, seq, id, session_id, turn_id, kind, role, text, calls, answers,
           format, message, created_at, prev_hash, hash
    FROM entry
"""
TURN = """
    SELECT id, conversation_id, state, outcome, error, error_code, stop, first_seq, steps,
           resumes, retries, model, started_at, finished_at
    FROM turn
"""
INBOX = """
    SELECT n, id, conversation_id, route, kind, text, payload, double_text, received_at,
           due_at, outcome, turn_id, step, note
    FROM inbox
"""
JOURNAL = """
    SELECT turn_id, step, call_id, position, tool, args, effect, runs, status, format,
           result
    FROM journal
"""
APPROVAL = """
    SELECT id, conversation_id, turn_id, step, call_id, tool, args, route, state, asked_at,
           expires_at, answered_by, note
    FROM approval
"""
DELIVERY = """
    SELECT id, conversation_id, turn_id, route, seq, kind, body, state, attempts, due_at,
           error, created_at
    FROM delivery
"""
CHUNK = """
    SELECT position, body, state, platform_id, repeated
    FROM delivery_chunk
"""


def optional_datetime(millis: int | None) -> datetime | None:
    return None if millis is None else from_millis(millis)


def to_conversation(row: Row) -> Conversation:
    return Conversation(
        id=row[0],
        scope=row[1],
        title=row[2],
        titled_by=None if row[3] is None else TitledBy(row[3]),
        adhoc=bool(row[4]),
        origin=row[5],
        origin_seq=row[6],
        head=row[7],
        last_seq=row[8],
        created_at=from_millis(row[9]),
        updated_at=from_millis(row[10]),
    )


def to_session(row: Row) -> Session:
    return Session(
        id=row[0],
        conversation_id=row[1],
        predecessor=row[2],
        opened_at=from_millis(row[3]),
        opened_by=row[4],
        opened_seq=row[5],
        instructions=row[6],
        ended_at=optional_datetime(row[7]),
        end_reason=row[8],
    )


def to_entry(row: Row) -> Entry:
    return Entry(
        conversation_id=row[0],
        seq=row[1],
        id=row[2],
        session_id=row[3],
        turn_id=row[4],
        kind=EntryKind(row[5]),
        role=None if row[6] is None else Role(row[6]),
        text=row[7],
        calls=_parse_strings(row[8]),
        answers=_parse_strings(row[9]),
        format=row[10],
        message=row[11],
        created_at=from_millis(row[12]),
        prev_hash=bytes(row[13]),
        hash=bytes(row[14]),
    )


def _parse_strings(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))


def to_lease(row: Row) -> Lease:
    """Convert a row of ``conversation_id, owner, fence, expires_at``."""
    return Lease(conversation_id=row[0], owner=row[1], fence=row[2], expires_at=from_millis(row[3]))


def to_turn(row: Row) -> Turn:
    return Turn(
        id=row[0],
        conversation_id=row[1],
        state=TurnState(row[2]),
        outcome=None if row[3] is None else TurnOutcome(row[3]),
        error=row[4],
        error_code=row[5],
        stop=None if row[6] is None else StopRequest(row[6]),
        first_seq=row[7],
        steps=row[8],
        resumes=row[9],
        retries=json.loads(row[10]),
        model=row[11],
        started_at=from_millis(row[12]),
        finished_at=optional_datetime(row[13]),
    )


def to_inbox_item(row: Row) -> InboxItem:
    return InboxItem(
        n=row[0],
        id=row[1],
        conversation_id=row[2],
        route=row[3],
        kind=InboxKind(row[4]),
        text=row[5],
        payload=row[6],
        double_text=DoubleText(row[7]),
        received_at=from_millis(row[8]),
        due_at=from_millis(row[9]),
        outcome=None if row[10] is None else InboxOutcome(row[10]),
        turn_id=row[11],
        step=row[12],
        note=row[13],
    )


def to_journaled_call(row: Row) -> JournaledCall:
    return JournaledCall(
        key=CallKey(turn_id=row[0], step=row[1], call_id=row[2]),
        position=row[3],
        tool=row[4],
        args=row[5],
        effect=Effect(row[6]),
        runs=row[7],
        status=None if row[8] is None else CallStatus(row[8]),
        format=row[9],
        result=row[10],
    )


def to_approval(row: Row) -> Approval:
    return Approval(
        id=row[0],
        conversation_id=row[1],
        turn_id=row[2],
        step=row[3],
        call_id=row[4],
        tool=row[5],
        args=row[6],
        route=row[7],
        state=ApprovalState(row[8]),
        asked_at=from_millis(row[9]),
        expires_at=from_millis(row[10]),
        answered_by=row[11],
        note=row[12],
    )


def to_delivery(row: Row) -> Delivery:
    return Delivery(
        id=row[0],
        conversation_id=row[1],
        turn_id=row[2],
        route=row[3],
        seq=row[4],
        kind=DeliveryKind(row[5]),
        body=row[6],
        state=DeliveryState(row[7]),
        attempts=row[8],
        due_at=from_millis(row[9]),
        error=row[10],
        created_at=from_millis(row[11]),
    )


def to_chunk(row: Row) -> Chunk:
    return Chunk(
        position=row[0],
        body=row[1],
        state=DeliveryState(row[2]),
        platform_id=row[3],
        repeated=row[4],
    )
