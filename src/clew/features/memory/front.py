"""Use cases of memory, for people, programs and the model on every front."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from clew.clock import from_millis
from clew.features.memory.wording import describe_source, format_listed
from clew.features.memory.writing import FactSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import ConversationId, TurnId
    from clew.features.memory.facts import Fact
    from clew.store.contract import Tx


def find_source(t: Tx, conversation: ConversationId, turn: TurnId | None = None) -> FactSource:
    """Return the last message of a person in a conversation, or in one of its turns."""
    row = t.fetch_one(
        """
        SELECT seq, text FROM entry
        WHERE conversation_id = $1 AND kind = 'message' AND role = 'user'
            AND ($2 = '' OR turn_id = $2)
        ORDER BY seq DESC LIMIT 1
        """,
        conversation,
        turn or "",
    )
    if row is None:
        return FactSource(conversation=conversation)
    return FactSource(conversation=conversation, seq=row[0], hash=hash_text(row[1]))


def hash_text(text: str) -> str:
    """Return what proves that a fact was taken from a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_source_there(t: Tx, fact: Fact) -> bool:
    """Return whether the conversation that a fact was taken from is still there."""
    return t.exists(
        "SELECT 1 FROM conversation WHERE id = $1 AND deleting_at IS NULL", fact.conversation
    )


def format_details(t: Tx, fact: Fact, before: Sequence[Fact]) -> str:
    """Return a fact with its source and what was there before, for people."""
    lines = [format_listed(fact), describe_source(fact, is_there=is_source_there(t, fact))]
    if (said := _read_source(t, fact)) is not None:
        lines.append(f"said: {said}")
    if fact.uses:
        lines.append(f"recalled {fact.uses} times")
    return "\n".join([*lines, *(f"before: {one.text}" for one in before if one.text)])


def _read_source(t: Tx, fact: Fact) -> str | None:
    """Return the entry that a fact was taken from; ``None`` if it is not the same any more."""
    if fact.seq is None:
        return None
    text: str | None = t.fetch_value(
        "SELECT text FROM entry WHERE conversation_id = $1 AND seq = $2",
        fact.conversation,
        fact.seq,
    )
    return text if text is not None and hash_text(text) == fact.source_hash else None


def describe_fact(t: Tx, fact: Fact) -> dict[str, Any]:
    """Return a fact as programs get it."""
    return {
        "id": fact.id,
        "scope": fact.scope,
        "number": fact.number,
        "kind": fact.kind.value,
        "text": fact.text,
        "state": fact.state.value,
        "pinned": bool(fact.pinned),
        "version": fact.version,
        "written_by": fact.written_by.value,
        "source": describe_source(fact, is_there=is_source_there(t, fact)),
        "conversation": fact.conversation,
        "seq": fact.seq,
        "replaces": fact.replaces,
        "uses": fact.uses,
        "created_at": from_millis(fact.created_at).isoformat(),
    }
