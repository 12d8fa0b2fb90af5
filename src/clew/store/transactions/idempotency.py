"""Idempotency keys: a repeated key gets the first answer."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from clew.errors import KeyReused
from clew.record import Record

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, InboxId
    from clew.store.contract import Tx

RETENTION_MS = 7 * 24 * 3600 * 1000


class IdempotencyRecord(Record):
    """Stored state of a key; ``status`` and ``answer`` are set once the first call has ended."""

    key: bytes
    inbox_id: InboxId | None
    conversation_id: ConversationId | None
    status: int | None
    answer: str | None


def hash_idempotency_key(token: str, path: str, key: str) -> bytes:
    """Return the SHA-256 of (token, path, the caller's key)."""
    return hashlib.sha256(json.dumps([token, path, key]).encode()).digest()


def claim_key(t: Tx, key: bytes, *, body: bytes) -> tuple[IdempotencyRecord, bool]:
    """
    Claim a key for a request with the body hash ``body``, and return whether it is new.

    :raises KeyReused: if the key was used with another body
    """
    t.execute("DELETE FROM idempotency WHERE key = $1 AND expires_at <= $2", key, t.now)
    inserted = t.execute(
        """
        INSERT INTO idempotency (key, body, created_at, expires_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (key) DO NOTHING
        """,
        key,
        body,
        t.now,
        t.now + RETENTION_MS,
    )
    row = t.fetch_one(
        """
        SELECT body, inbox_id, conversation_id, status, answer FROM idempotency WHERE key = $1
        """,
        key,
    )
    assert row is not None
    known_body, inbox_id, conversation, status, answer = row
    if bytes(known_body) != body:
        raise KeyReused
    known = IdempotencyRecord(
        key=key, inbox_id=inbox_id, conversation_id=conversation, status=status, answer=answer
    )
    return known, bool(inserted)


def bind_key(t: Tx, key: bytes, inbox_id: InboxId, conversation: ConversationId) -> None:
    """Record the input of a key, in the transaction that accepts the input."""
    t.execute(
        "UPDATE idempotency SET inbox_id = $2, conversation_id = $3 WHERE key = $1",
        key,
        inbox_id,
        conversation,
    )


def store_answer(t: Tx, key: bytes, *, status: int, answer: str) -> None:
    """Record the answer; the first one stays."""
    t.execute(
        "UPDATE idempotency SET status = $2, answer = $3 WHERE key = $1 AND status IS NULL",
        key,
        status,
        answer,
    )


def delete_expired_keys(t: Tx, *, rows: int = 500) -> int:
    """Delete at most ``rows`` expired keys, and return their count."""
    return t.execute(
        """
        DELETE FROM idempotency
        WHERE key IN (SELECT key FROM idempotency WHERE expires_at <= $1 LIMIT $2)
        """,
        t.now,
        rows,
    )
