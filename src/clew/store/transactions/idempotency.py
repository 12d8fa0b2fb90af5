"""Idempotency keys: the same key gets the first answer again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.errors import KeyReused

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, InboxId
    from clew.store.contract import Tx

KEPT = 7 * 24 * 3600 * 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """What is known of a key; ``status`` and ``answer`` are there once the first call has ended."""

    key: bytes
    inbox_id: InboxId | None
    conversation_id: ConversationId | None
    status: int | None
    answer: str | None


def idempotency_key(token: str, path: str, key: str) -> bytes:
    """sha256 of (token, path, the caller's key)."""
    return hashlib.sha256(json.dumps([token, path, key]).encode()).digest()


def claim_key(t: Tx, key: bytes, *, body: bytes) -> tuple[Answered, bool]:
    """
    Claim a key for a request whose body has the hash ``body``, and say whether this is the first
    time.

    :raises KeyReused: if the key came with another body before
    """
    t.run("DELETE FROM idempotency WHERE key = $1 AND expires_at <= $2", key, t.now)
    inserted = t.run(
        """
        INSERT INTO idempotency (key, body, created_at, expires_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (key) DO NOTHING
        """,
        key,
        body,
        t.now,
        t.now + KEPT,
    )
    row = t.one(
        """
        SELECT body, inbox_id, conversation_id, status, answer FROM idempotency WHERE key = $1
        """,
        key,
    )
    assert row is not None
    if bytes(row[0]) != body:
        raise KeyReused
    known = Answered(key=key, inbox_id=row[1], conversation_id=row[2], status=row[3], answer=row[4])
    return known, bool(inserted)


def bind_key(t: Tx, key: bytes, inbox_id: InboxId, conversation: ConversationId) -> None:
    """Record which input the key led to; called in the transaction that accepts it."""
    t.run(
        "UPDATE idempotency SET inbox_id = $2, conversation_id = $3 WHERE key = $1",
        key,
        inbox_id,
        conversation,
    )


def answer_key(t: Tx, key: bytes, *, status: int, answer: str) -> None:
    """Record the answer; the first one stays."""
    t.run(
        "UPDATE idempotency SET status = $2, answer = $3 WHERE key = $1 AND status IS NULL",
        key,
        status,
        answer,
    )


def forget_keys(t: Tx, *, rows: int = 500) -> int:
    """Forget at most ``rows`` of the keys whose time is over; how many."""
    return t.run(
        """
        DELETE FROM idempotency
        WHERE key IN (SELECT key FROM idempotency WHERE expires_at <= $1 LIMIT $2)
        """,
        t.now,
        rows,
    )
