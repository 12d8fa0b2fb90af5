"""Totals of tokens and cost, grouped for operators."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, LiteralString

from clew.clock import from_millis
from clew.record import Record

if TYPE_CHECKING:
    from clew.store.contract import Row, Tx, Value

_DAY_MS: Final = 24 * 3600 * 1000


class UsageKey(enum.Enum):
    """The keys by which usage is grouped."""

    DAY = "day"
    MODEL = "model"
    CONVERSATION = "conversation"
    SCOPE = "scope"


class UsagePeriod(Record):
    """A period in milliseconds; its days begin ``offset`` milliseconds before those of UTC."""

    since: int
    until: int
    offset: int = 0


class UsageTotal(Record):
    """The totals of one group."""

    #: A date, a model, a conversation's id or a scope; empty for the total of all.
    key: str
    #: The title, of a conversation.
    title: str | None
    requests: int
    turns: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    #: Millionths of a US dollar; ``None`` if no price is known.
    cost_micros: int | None
    #: Requests whose price is not known.
    unpriced: int


_SUMS: LiteralString = """
    count(*), count(DISTINCT u.turn_id), COALESCE(sum(u.input_tokens), 0),
    COALESCE(sum(u.cached_tokens), 0), COALESCE(sum(u.output_tokens), 0), sum(u.cost_micros),
    count(*) - count(u.cost_micros)
"""
_PERIOD: LiteralString = "u.created_at >= $1 AND u.created_at < $2"
_MOST_FIRST: LiteralString = """
    ORDER BY COALESCE(sum(u.cost_micros), 0) DESC,
             sum(u.input_tokens) + sum(u.output_tokens) DESC, 1
    LIMIT $3
"""
_GROUPS: Final[dict[UsageKey, LiteralString]] = {
    UsageKey.DAY: f"""
        SELECT (u.created_at + $4) / 86400000, NULL, {_SUMS} FROM usage u WHERE {_PERIOD}
        GROUP BY 1 ORDER BY 1 DESC LIMIT $3
    """,
    UsageKey.MODEL: f"""
        SELECT u.model, NULL, {_SUMS} FROM usage u WHERE {_PERIOD} GROUP BY 1, 2 {_MOST_FIRST}
    """,
    UsageKey.CONVERSATION: f"""
        SELECT u.conversation_id, c.title, {_SUMS}
        FROM usage u LEFT JOIN conversation c ON c.id = u.conversation_id
        WHERE {_PERIOD} GROUP BY 1, 2 {_MOST_FIRST}
    """,
    UsageKey.SCOPE: f"""
        SELECT COALESCE(c.scope, ''), NULL, {_SUMS}
        FROM usage u LEFT JOIN conversation c ON c.id = u.conversation_id
        WHERE {_PERIOD} GROUP BY 1, 2 {_MOST_FIRST}
    """,
}


def sum_period(t: Tx, period: UsagePeriod) -> UsageTotal:
    """Return the total of a period."""
    (row,) = t.fetch_all(
        f"SELECT '', NULL, {_SUMS} FROM usage u WHERE {_PERIOD}", period.since, period.until
    )
    return _to_total(row)


def group_usage(t: Tx, period: UsagePeriod, key: UsageKey, *, limit: int) -> list[UsageTotal]:
    """Return the totals of a period by key: the last days in order, else the most first."""
    args: tuple[Value, ...] = (period.since, period.until, limit)
    if key is not UsageKey.DAY:
        return [_to_total(row) for row in t.fetch_all(_GROUPS[key], *args)]
    rows = t.fetch_all(_GROUPS[key], *args, period.offset)
    return [_to_total((_format_day(int(row[0])), *row[1:])) for row in reversed(rows)]


def _to_total(row: Row) -> UsageTotal:
    key, title, requests, turns, read, cached, written, cost, unpriced = row
    return UsageTotal(
        key=key,
        title=title,
        requests=int(requests),
        turns=int(turns),
        input_tokens=int(read),
        cached_tokens=int(cached),
        output_tokens=int(written),
        cost_micros=None if cost is None else int(cost),
        unpriced=int(unpriced),
    )


def _format_day(day: int) -> str:
    return from_millis(day * _DAY_MS).date().isoformat()
