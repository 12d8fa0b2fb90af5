"""The gateway: every channel that the settings name, each on its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self, cast

import structlog

from clew.core.double_text import resolve_rule
from clew.core.health import DeliveryLimits
from clew.core.people import AccessPolicy
from clew.distribution import format_install_command
from clew.engine.doors import WebhookRegistry
from clew.engine.slash import COMMANDS
from clew.errors import SettingsError
from clew.gateway.channel import Channel, ChannelConfig, Factory, Marks, MemoryMarks
from clew.gateway.options import channel_kinds
from clew.gateway.router import Manners
from clew.gateway.supervision import Setup, Supervised
from clew.gateway.timer import SystemTimer, Timer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from clew.config import Settings
    from clew.config.settings import ChannelSettings
    from clew.engine.engine import Engine

log = structlog.get_logger(__name__)


class Gateway:
    """
    Inside ``async with`` the channels run; leaving it lets what is on its way arrive.

    A channel that cannot be started is told of and tried again, and holds no other one up.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        factories: Mapping[str, Factory] | None = None,
        timer: Timer | None = None,
    ) -> None:
        timer = timer or SystemTimer()
        setups = [
            make_setup(
                name,
                channel,
                settings.session.double_text,
                factories or {},
                doors=engine.webhooks,
                marks=engine.get_channel_storage(name),
            )
            for name, channel in settings.channels.items()
            if channel.enabled
        ]
        self._channels = [Supervised(engine, setup, timer) for setup in setups]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for channel in self._channels:
            self._tasks.append(asyncio.create_task(channel.run(), name="channel"))
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for channel in self._channels:
            channel.stop()
        if self._tasks:
            await asyncio.wait(self._tasks)


def make_setup(
    name: str,
    channel: ChannelSettings,
    double_text: str,
    factories: Mapping[str, Factory],
    *,
    doors: WebhookRegistry | None = None,
    marks: Marks | None = None,
) -> Setup:
    """What the settings say about one channel."""
    kind = channel.kind or name
    label = None if kind == name else name
    config = ChannelConfig(
        name=name,
        token=channel.token,
        base_url=channel.base_url,
        options=channel.options,
        label=label,
        commands=tuple((one.name, one.help) for one in COMMANDS),
        doors=doors or WebhookRegistry(),
        marks=marks or MemoryMarks(),
    )

    def make() -> Channel:
        return (factories.get(kind) or find_factory(kind, name))(config)

    return Setup(
        name=name,
        make=make,
        manners=Manners(
            policy=AccessPolicy(
                allow=frozenset(channel.allow),
                operators=frozenset(channel.operators),
                groups=frozenset(channel.groups),
                mention=channel.mention,
                open_groups=channel.open_groups,
                codes=channel.pairing == "on" or (channel.pairing == "auto" and not channel.allow),
            ),
            double_text=resolve_rule(channel.double_text or double_text, people=True),
            apart=channel.apart,
            largest_file=channel.largest_file,
            file_types=channel.file_types,
        ),
        label=label,
        stream=channel.stream,
        kind=kind,
        limits=DeliveryLimits(failures=channel.alarm_failures, after=channel.alarm_after),
    )


def find_factory(kind: str, name: str) -> Factory:
    """
    What makes channels of a kind.

    :raises SettingsError: if it is not installed
    """
    known = channel_kinds()
    if kind not in known:
        raise SettingsError(
            f"[channels.{name}]: there is no channel {kind!r}; installed are "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    try:
        return cast("Factory", known[kind].load())
    except ImportError as error:
        raise SettingsError(
            f"[channels.{name}]: {error.name or error} is not installed: {format_install_command(kind)}"
        ) from error
