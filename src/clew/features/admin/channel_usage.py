"""The usage of channels, summed up from that of their people and chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.route import Route
from clew.core.scope import LOCAL
from clew.errors import UsageError
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.store.transactions.usage_totals import UsageTotal


def find_channel(scope: str) -> str:
    """Return the NAME of the channel of a scope; the scope itself if it has none."""
    if scope == LOCAL:
        return scope
    try:
        return Route.parse(f"agent:main:{scope.partition(':')[2]}").channel
    except UsageError:
        return scope


def sum_by_channel(scopes: Iterable[UsageTotal]) -> list[UsageTotal]:
    """Return the totals of channels, the most expensive first."""
    found: dict[str, UsageTotal] = {}
    for one in scopes:
        name = find_channel(one.key)
        found[name] = _add(found[name], one) if name in found else replace(one, key=name)
    return sorted(
        found.values(),
        key=lambda one: (-(one.cost_micros or 0), -one.input_tokens - one.output_tokens, one.key),
    )


def _add(one: UsageTotal, other: UsageTotal) -> UsageTotal:
    costs = [each.cost_micros for each in (one, other) if each.cost_micros is not None]
    return replace(
        one,
        requests=one.requests + other.requests,
        turns=one.turns + other.turns,
        input_tokens=one.input_tokens + other.input_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cost_micros=sum(costs) if costs else None,
        unpriced=one.unpriced + other.unpriced,
    )
