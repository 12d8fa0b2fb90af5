"""The entries of the log that facts were taken from."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.features.memory.writing import FactSource

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, TurnId
    from clew.features.memory.facts import Fact
    from clew.store.contract import Tx


def find_source(t: Tx, conversation: ConversationId, turn: TurnId) -> FactSource:
    """Return the last message of a person in a turn."""
    row = t.fetch_one(
        """
        SELECT seq, text FROM entry
        WHERE conversation_id = $1 AND turn_id = $2 AND kind = 'message' AND role = 'user'
        ORDER BY seq DESC LIMIT 1
        """,
        conversation,
        turn,
    )
    if row is None:
        return FactSource(conversation=conversation)
    return FactSource(conversation=conversation, seq=row[0], hash=_hash_text(row[1]))


def make_source(t: Tx, conversation: ConversationId, seq: int) -> FactSource:
    """Return an entry as a source."""
    text: str = t.fetch_value(
        "SELECT text FROM entry WHERE conversation_id = $1 AND seq = $2", conversation, seq
    )
    return FactSource(conversation=conversation, seq=seq, hash=_hash_text(text))


def is_there(t: Tx, conversation: ConversationId | None) -> bool:
    """Return whether the conversation that a fact was taken from is still there."""
    return t.exists(
        "SELECT 1 FROM conversation WHERE id = $1 AND deleting_at IS NULL", conversation
    )


def read_text(t: Tx, fact: Fact) -> str | None:
    """Return the entry that a fact was taken from; ``None`` if it is not the same any more."""
    if fact.seq is None:
        return None
    text: str | None = t.fetch_value(
        "SELECT text FROM entry WHERE conversation_id = $1 AND seq = $2",
        fact.conversation,
        fact.seq,
    )
    return text if text is not None and _hash_text(text) == fact.source_hash else None


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
