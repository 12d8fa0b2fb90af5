"""The operation that sums tokens and cost up."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal, get_args

from pydantic import BaseModel, Field

from clew.api.operation_scope import LOCAL_CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import QueryParams
from clew.clock import from_millis, now_millis
from clew.core.moments import parse_moment
from clew.errors import UsageError
from clew.features.admin.channel_usage import sum_by_channel
from clew.store.transactions.usage_totals import UsageKey, UsagePeriod, group_usage, sum_period
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import Params
from clew.wire.serializers import format_timestamp

if TYPE_CHECKING:
    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.store.contract import Store, Tx
    from clew.store.transactions.usage_totals import UsageTotal

#: Groups that are returned at most, and the period where none is given.
MAX_GROUPS: Final = 400
_DEFAULT_PERIOD: Final = timedelta(days=30)
#: More than there will be scopes: channels are summed up from all of them.
_EVERY_SCOPE: Final = 1_000_000
_MINUTE_MS: Final = 60_000

Dimension = Literal["day", "model", "conversation", "channel", "person"]
DIMENSIONS: Final = get_args(Dimension)
_KEYS: Final = {
    "day": UsageKey.DAY,
    "model": UsageKey.MODEL,
    "conversation": UsageKey.CONVERSATION,
    "channel": UsageKey.SCOPE,
    "person": UsageKey.SCOPE,
}


class UsageSum(WireModel):
    """Tokens, turns and cost of one group."""

    #: A date, a model, a conversation, a channel, or the scope of a person or a chat.
    key: str
    #: The title, of a conversation.
    title: str | None
    requests: int
    turns: int
    input_tokens: int
    #: Those of ``input_tokens`` that the provider had in its cache.
    cached_tokens: int
    output_tokens: int
    #: US dollars; null if no price is known.
    cost: float | None
    #: Requests whose price is not known.
    unpriced: int


class UsageSummary(WireModel):
    """Usage in a period."""

    since: str
    until: str
    total: UsageSum
    #: Days in order, all others with the most expensive first.
    items: list[UsageSum]
    #: There are more groups than are shown.
    more: bool


class _SummaryFields(BaseModel):
    by: Dimension = "day"
    #: Dates or times as ISO 8601 has them, in UTC if no zone is given: the last 30 days if they are
    #: missing.
    since: str | None = Field(default=None, min_length=1, max_length=40)
    until: str | None = Field(default=None, min_length=1, max_length=40)
    #: Minutes that the clocks of the days are ahead of UTC.
    offset: int = Field(default=0, ge=-840, le=840)


class UsageParams(_SummaryFields, Params):
    """The key by which usage is summed up, and the period."""


class UsageQuery(_SummaryFields, QueryParams):
    offset: int = Field(default=0, ge=-840, le=840, strict=False)


def make_period(given: _SummaryFields, now: int) -> UsagePeriod:
    """
    Return the period that is asked for.

    :raises UsageError: if a time cannot be read, or if it ends before it begins
    """
    until = now + 1 if given.until is None else parse_moment("until", given.until)
    since = parse_moment("since", given.since) if given.since is not None else None
    if since is None:
        since = until - _DEFAULT_PERIOD // timedelta(milliseconds=1)
    if since >= until:
        raise UsageError("since must be before until")
    return UsagePeriod(since=since, until=until, offset=given.offset * _MINUTE_MS)


def summarize(t: Tx, by: str, period: UsagePeriod) -> tuple[UsageTotal, list[UsageTotal]]:
    """Return the total of a period, and its groups: one more than are shown, if there are."""
    limit = _EVERY_SCOPE if by == "channel" else MAX_GROUPS + 1
    groups = group_usage(t, period, _KEYS[by], limit=limit)
    if by == "channel":
        groups = sum_by_channel(groups)
    return sum_period(t, period), groups


def _describe(total: UsageTotal) -> UsageSum:
    return UsageSum(
        key=total.key,
        title=total.title,
        requests=total.requests,
        turns=total.turns,
        input_tokens=total.input_tokens,
        cached_tokens=total.cached_tokens,
        output_tokens=total.output_tokens,
        cost=None if total.cost_micros is None else total.cost_micros / 1_000_000,
        unpriced=total.unpriced,
    )


async def read_summary(store: Store, given: UsageParams) -> UsageSummary:
    """
    Return the usage of a period.

    :raises UsageError: if the period is wrong
    """
    period = make_period(given, now_millis())
    total, groups = await store.read(summarize, given.by, period)
    more = len(groups) > MAX_GROUPS
    # Of days, the first are those that are left out.
    shown = groups[-MAX_GROUPS:] if given.by == "day" else groups[:MAX_GROUPS]
    return UsageSummary(
        since=format_timestamp(from_millis(period.since)) or "",
        until=format_timestamp(from_millis(period.until)) or "",
        total=_describe(total),
        items=[_describe(one) for one in shown],
        more=more,
    )


async def _summarize_usage(call: OperationCall, given: UsageParams) -> UsageSummary:
    return await read_summary(call.engine.feature_context.store, given)


OPERATIONS: Final[tuple[AnyOperation, ...]] = (
    make_operation(
        RpcMethod(
            name="usage.summary",
            params=UsageParams,
            result=UsageSummary,
            summary="Tokens, turns and cost of a period, by day, model, conversation and others.",
            errors=(ErrorCode.INVALID_VALUE,),
        ),
        _summarize_usage,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path="/api/usage",
            summary="Tokens, turns and cost of a period",
            answer="The total, and its groups",
            query=UsageQuery,
        ),
        is_ordered=False,
    ),
)
