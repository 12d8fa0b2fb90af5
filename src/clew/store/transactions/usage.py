"""Usage: what each model request cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, TurnId
    from clew.store.contract import Tx


@dataclass(frozen=True, kw_only=True, slots=True)
class Used:
    """Tokens, and millionths of a US dollar where the price is known."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None


def record_usage(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    usage_id: str,
    conversation: ConversationId,
    used: Used,
    *,
    model: str,
    purpose: str = "turn",
    turn: TurnId | None = None,
    step: int | None = None,
) -> None:
    """Record one model request; repeating it with the same id changes nothing."""
    t.run(
        """
        INSERT INTO usage (id, conversation_id, turn_id, step, purpose, model, input_tokens,
                           cached_tokens,
                           output_tokens, cost_micros, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING
        """,
        usage_id,
        conversation,
        turn,
        step,
        purpose,
        model,
        used.input_tokens,
        used.cached_tokens,
        used.output_tokens,
        used.cost_micros,
        t.now,
    )


def usage_of(t: Tx, conversation: ConversationId, *, turn: TurnId | None = None) -> Used:
    """The sum over a conversation, or over one of its turns."""
    row = t.one(
        """
        SELECT COALESCE(sum(input_tokens), 0), COALESCE(sum(cached_tokens), 0),
               COALESCE(sum(output_tokens), 0), sum(cost_micros)
        FROM usage WHERE conversation_id = $1 AND ($2 = '' OR turn_id = $2)
        """,
        conversation,
        turn or "",
    )
    assert row is not None
    return Used(
        input_tokens=int(row[0]),
        cached_tokens=int(row[1]),
        output_tokens=int(row[2]),
        cost_micros=None if row[3] is None else int(row[3]),
    )
