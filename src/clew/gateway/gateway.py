"""The gateway: runs all channels of the settings, independently of each other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self, cast

import structlog

from clew.commands.builtin import BUILTIN_REGISTRY
from clew.config.channel_access import make_access_policy
from clew.core.double_text import parse_rule
from clew.core.health import DeliveryLimits
from clew.errors import SettingsError
from clew.gateway.channel import (
    Channel,
    ChannelConfig,
    ChannelFactory,
    ChannelStorage,
    MemoryChannelStorage,
)
from clew.gateway.channel_settings import list_channel_kinds
from clew.gateway.router import ChannelPolicy
from clew.gateway.supervisor import ChannelSpec, ChannelSupervisor
from clew.gateway.timer import SystemTimer, Timer
from clew.plugin.declarations import ChannelKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from clew.commands.registry import CommandRegistry
    from clew.config import Settings
    from clew.config.settings import ChannelSettings
    from clew.engine.engine import Engine
    from clew.plugin.registry import Features

log = structlog.get_logger(__name__)


class Gateway:
    """
    Runs the channels inside ``async with``; leaving it lets pending deliveries arrive.

    A channel that cannot be started is reported and retried, and blocks no other one.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        commands: CommandRegistry = BUILTIN_REGISTRY,
        factories: Mapping[str, ChannelFactory] | None = None,
        timer: Timer | None = None,
    ) -> None:
        timer = timer or SystemTimer()
        factories = {**make_feature_factories(engine.features), **(factories or {})}
        setups = [
            make_channel_spec(
                name,
                channel,
                settings.session.double_text,
                factories,
                commands=commands,
                marks=engine.get_channel_storage(name),
                people_answer=settings.approvals.approvers == "people",
            )
            for name, channel in settings.channels.items()
            if channel.enabled
        ]
        self._channels = [ChannelSupervisor(engine, setup, timer) for setup in setups]
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


def make_channel_spec(
    name: str,
    channel: ChannelSettings,
    double_text: str,
    factories: Mapping[str, ChannelFactory],
    *,
    commands: CommandRegistry = BUILTIN_REGISTRY,
    marks: ChannelStorage | None = None,
    people_answer: bool = False,
) -> ChannelSpec:
    """Return the specification of one channel, as the settings have it."""
    kind = channel.kind or name
    label = None if kind == name else name
    config = ChannelConfig(
        name=name,
        token=channel.token,
        base_url=channel.base_url,
        options=channel.options,
        label=label,
        commands=tuple((one.name, one.help) for one in commands.commands if " " not in one.name),
        storage=marks or MemoryChannelStorage(),
    )

    def create_channel() -> Channel:
        return (factories.get(kind) or find_channel_factory(kind, name))(config)

    return ChannelSpec(
        name=name,
        create_channel=create_channel,
        commands=commands,
        policy=ChannelPolicy(
            access_policy=make_access_policy(channel, people_answer=people_answer),
            double_text=parse_rule(channel.double_text or double_text, people=True),
            per_user_groups=channel.apart,
            agent=channel.agent,
            largest_file=channel.largest_file,
            file_types=channel.file_types,
        ),
        label=label,
        stream=channel.stream,
        kind=kind,
        limits=DeliveryLimits(failures=channel.alarm_failures, after=channel.alarm_after),
    )


def make_feature_factories(features: Features) -> Mapping[str, ChannelFactory]:
    """Return a factory for each kind of channel of a feature; loads it when it is used."""

    def make_factory(kind: str) -> ChannelFactory:
        return lambda config: find_channel_factory(kind, config.name, features)(config)

    return {kind.name: make_factory(kind.name) for kind in features.values(ChannelKind)}


def find_channel_factory(kind: str, name: str, features: Features | None = None) -> ChannelFactory:
    """
    Return the factory for a kind of channel.

    :raises SettingsError: if the kind is not installed
    """
    known = list_channel_kinds(features)
    if kind not in known:
        raise SettingsError(
            f"[channels.{name}]: there is no channel {kind!r}; installed are "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    try:
        return cast("ChannelFactory", known[kind].load())
    except ImportError as error:
        raise SettingsError(
            f"[channels.{name}]: the channel {kind!r} needs {error.name or error}, which is not "
            "installed"
        ) from error
