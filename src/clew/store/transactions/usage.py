"""Usage: tokens and cost of each model request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from decimal import Decimal

    from clew.core.ids import ConversationId, TurnId
    from clew.core.side_answer import SideAnswer
    from clew.store.contract import Tx


class TokenUsage(Record):
    """Token counts, and the cost in millionths of a US dollar if the price is known."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None


class UsageRecord(Record):
    """Usage of one answered model request."""

    #: Made by the caller: recording the same id again changes nothing.
    id: str
    used: TokenUsage
    model: str
    #: Purpose: a turn, a summary, a title.
    purpose: str = "turn"


def record_answer(
    t: Tx, conversation: ConversationId, answer: SideAnswer, *, id: str, purpose: str
) -> None:
    """Record the usage of a request beside a conversation, as ``record_usage`` does."""
    used = TokenUsage(
        input_tokens=answer.input_tokens,
        cached_tokens=answer.cached_tokens,
        output_tokens=answer.output_tokens,
        cost_micros=answer.cost_micros,
    )
    record_usage(
        t, conversation, UsageRecord(id=id, used=used, model=answer.model, purpose=purpose)
    )


def dollars_to_micros(dollars: Decimal | None) -> int | None:
    """Return US dollars in millionths; ``None`` if the price is unknown."""
    return None if dollars is None else round(dollars * 1_000_000)


def record_usage(
    t: Tx,
    conversation: ConversationId,
    request: UsageRecord,
    *,
    turn: TurnId | None = None,
    step: int | None = None,
) -> None:
    """Record the usage of a model request; repeating it with the same id changes nothing."""
    t.execute(
        """
        INSERT INTO usage (id, conversation_id, turn_id, step, purpose, model, input_tokens,
                           cached_tokens, output_tokens, cost_micros, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING
        """,
        request.id,
        conversation,
        turn,
        step,
        request.purpose,
        request.model,
        request.used.input_tokens,
        request.used.cached_tokens,
        request.used.output_tokens,
        request.used.cost_micros,
        t.now,
    )


def sum_usage(t: Tx, conversation: ConversationId, *, turn: TurnId | None = None) -> TokenUsage:
    """Return the total usage of a conversation, or of one of its turns."""
    ((read, cached, written, cost),) = t.fetch_all(
        """
        SELECT COALESCE(sum(input_tokens), 0), COALESCE(sum(cached_tokens), 0),
               COALESCE(sum(output_tokens), 0), sum(cost_micros)
        FROM usage WHERE conversation_id = $1 AND ($2 = '' OR turn_id = $2)
        """,
        conversation,
        turn or "",
    )
    return TokenUsage(
        input_tokens=int(read),
        cached_tokens=int(cached),
        output_tokens=int(written),
        cost_micros=None if cost is None else int(cost),
    )
