"""The operation that shows the channels, and how each is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from clew.api.operation_scope import LOCAL_CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams
from clew.wire.serializers import format_timestamp

if TYPE_CHECKING:
    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.config.settings import ChannelSettings
    from clew.core.health import ChannelHealth
    from clew.store.transactions.backlog import DeliveryCounts

#: The state of a channel that the settings turn off.
_OFF: Final = "off"


class ChannelDeliveries(WireModel):
    """The messages to a channel that did not arrive, as the store has them."""

    waiting: int
    #: When the oldest that waits was stored.
    oldest: str | None
    #: Those that were given up.
    failed: int
    #: A limit of the settings is exceeded.
    failing: bool
    error: str | None


class ChannelStatus(WireModel):
    """A channel of the settings, as this process has it."""

    name: str
    platform: str
    #: ``connecting``, ``connected``, ``degraded``, ``standby``, ``refused`` or ``off``.
    state: str
    since: str | None
    #: Seconds since the platform answered, and since its last event.
    heard: float | None
    event: float | None
    #: Why it is not connected.
    error: str | None
    deliveries: ChannelDeliveries


class ChannelList(WireModel):
    items: list[ChannelStatus]


def describe_channel(
    name: str,
    channel: ChannelSettings,
    health: ChannelHealth | None,
    counts: DeliveryCounts | None,
) -> ChannelStatus:
    """Return a channel as programs get it; ``health`` is missing if it does not run here."""
    deliveries = ChannelDeliveries(
        waiting=0 if counts is None else counts.waiting,
        oldest=None if counts is None else format_timestamp(counts.oldest),
        failed=0 if counts is None else counts.failed,
        failing=health is not None and health.deliveries.failing,
        error=None if health is None else health.deliveries.error,
    )
    return ChannelStatus(
        name=name,
        platform=channel.kind or name,
        state=_OFF if health is None else health.state.value,
        since=None if health is None else format_timestamp(health.since),
        heard=None if health is None else _seconds_since(health.heard_at),
        event=None if health is None else _seconds_since(health.event_at),
        error=None if health is None else health.error,
        deliveries=deliveries,
    )


def _seconds_since(moment: datetime | None) -> float | None:
    return None if moment is None else round((datetime.now(UTC) - moment).total_seconds(), 1)


async def _list_channels(call: OperationCall, given: NoParams) -> ChannelList:
    settings, running = call.context.settings.channels, call.engine.channels
    counts = await call.engine.deliveries.count_by_channel()
    return ChannelList(
        items=[
            describe_channel(name, channel, running.get(name), counts.get(name))
            for name, channel in settings.items()
        ]
    )


OPERATIONS: Final[tuple[AnyOperation, ...]] = (
    make_operation(
        RpcMethod(
            name="channel.list",
            params=NoParams,
            result=ChannelList,
            summary="The channels of the settings, and how each is.",
        ),
        _list_channels,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path="/api/channels",
            summary="The channels, and how each is",
            answer="All channels of the settings",
        ),
        is_ordered=False,
    ),
)
