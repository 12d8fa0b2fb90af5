"""Checks of the channels: their settings, and the delivery of their messages."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clew.clock import SystemClock, to_millis
from clew.core.doctor_finding import fail, ok, warn
from clew.core.health import DeliveryLimits
from clew.errors import ClewError
from clew.gateway.gateway import make_channel_spec, make_feature_factories
from clew.plugin.loading import get_features
from clew.store.transactions.backlog import backlogs_by_account, count_dead_letters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.config import Settings
    from clew.core.doctor_finding import DoctorFinding
    from clew.store.contract import Store
    from clew.store.transactions.backlog import DeliveryBacklog, PlatformAccount

#: Deliveries given up within this time are reported.
_RECENT: Final = timedelta(days=1)


def check_channels(settings: Settings) -> Iterator[DoctorFinding]:
    """Build each enabled channel from its settings; opens no connection."""
    factories = make_feature_factories(get_features(settings))
    for name, channel in settings.channels.items():
        if not channel.enabled:
            continue
        try:
            made = make_channel_spec(
                name, channel, settings.session.double_text, factories
            ).create_channel()
        except ClewError as error:
            yield fail(f"channel {name}", str(error))
        except Exception as error:  # noqa: BLE001  (third-party code)
            what = f"{type(error).__name__}: {error}"
            yield fail(f"channel {name}", f"it cannot be loaded: {what}")
        else:
            yield ok(f"channel {name}", f"{made.platform}, account {made.account}")


async def check_deliveries(store: Store, settings: Settings) -> Sequence[DoctorFinding]:
    """Check pending deliveries, and those given up recently."""
    now = SystemClock().now()
    waiting = await store.read(backlogs_by_account)
    lost = await store.read(count_dead_letters, since=to_millis(now - _RECENT))
    troubles = [
        warn("deliveries", detail, fix="clew deliveries list --all")
        for front in sorted({*waiting, *lost}, key=lambda front: (front[0], front[1] or ""))
        for detail in _describe_problems(front, waiting, lost, _delivery_limits(settings, front))
    ]
    count = sum(each.waiting for each in waiting.values())
    fine = ok("deliveries", f"{count or 'none'} in progress, none abandoned in the last day")
    return troubles or [fine]


def _delivery_limits(settings: Settings, front: PlatformAccount) -> DeliveryLimits:
    platform, account = front
    channel = settings.channels.get(account or platform)
    if channel is None:
        return DeliveryLimits()
    return DeliveryLimits(failures=channel.alarm_failures, after=channel.alarm_after)


def _describe_problems(
    front: PlatformAccount,
    waiting: Mapping[PlatformAccount, DeliveryBacklog],
    lost: Mapping[PlatformAccount, int],
    limits: DeliveryLimits,
) -> Iterator[str]:
    name = front[1] or front[0]
    if (found := waiting.get(front)) is not None:
        now = SystemClock().now()
        if limits.is_exceeded(failures=found.attempts, oldest=found.oldest, now=now):
            minutes = (now - found.oldest) // timedelta(minutes=1)
            why = f": {found.error}" if found.error else ""
            yield f"{name}: {found.waiting} not delivered, the oldest for {minutes} minutes{why}"
    if count := lost.get(front):
        yield f"{name}: {count} abandoned in the last day"
