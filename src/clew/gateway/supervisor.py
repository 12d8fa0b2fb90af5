"""Supervision of one channel: its failures are contained, and it is reconnected."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from clew.background import cancel_and_wait
from clew.commands.builtin import BUILTIN_REGISTRY
from clew.core.access import ChannelAccount
from clew.core.health import ChannelHealth, ChannelState, DeliveryLimits
from clew.engine.log_throttle import LogThrottle
from clew.errors import (
    AccountInUse,
    AccountRefused,
    ChannelError,
    ClewError,
    NotSent,
    SettingsError,
    StoreError,
)
from clew.gateway.delivery_monitor import DeliveryMonitor
from clew.gateway.delivery_worker import DeliverySender, DeliveryWorker
from clew.gateway.platform_client import PlatformClient
from clew.gateway.preview_streamer import PreviewStreamer
from clew.gateway.previews import PreviewRegistry
from clew.gateway.router import ChannelPolicy, Router
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence

    from clew.commands.registry import CommandRegistry
    from clew.core.channel_events import ChannelEvent
    from clew.engine.engine import Engine
    from clew.gateway.channel import Channel
    from clew.gateway.timer import Timer

log = structlog.get_logger(__name__)

#: Seconds between two attempts to connect: doubled up to the longest.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
#: Seconds until the next attempt where a person has to act first.
REFUSED_PAUSE = 60.0
#: Seconds to connect, and without a batch until the connection counts as dead.
CONNECT_TIMEOUT, SILENCE_TIMEOUT = 30.0, 90.0
#: Seconds after which a cancelled task that does not end is abandoned.
_CANCEL_GRACE = 5.0
#: Duration of the right to an account, and the interval of its renewal.
ACCOUNT_LOCK_DURATION = timedelta(seconds=30)
_RENEW_INTERVAL = 8.0
#: Seconds for the store to answer: without an answer the channel stops before the right expires.
_STORE_TIMEOUT = 5.0
#: Seconds between two checks of a standby process.
_STANDBY_INTERVAL = 1.0
#: Seconds between two checks of the delivery backlog.
MONITOR_INTERVAL = 15.0
#: Seconds for turns to end, and for answers to arrive, when the gateway stops.
FINISH_TIMEOUT = 3.0
#: Seconds for running calls to end when a channel stops.
DRAIN_TIMEOUT = 5.0
_FAILED = (ChannelState.DEGRADED, ChannelState.REFUSED)


class ChannelSpec(Record):
    """One channel, as the settings define it."""

    #: NAME of the table ``[channels.NAME]``.
    name: str
    create_channel: Callable[[], Channel]
    policy: ChannelPolicy
    label: str | None
    stream: bool
    #: The kind of channel; stands in for the platform until the channel exists.
    kind: str = ""
    commands: CommandRegistry = BUILTIN_REGISTRY
    limits: DeliveryLimits = field(default_factory=DeliveryLimits)


class ChannelSupervisor:
    """One channel: connected, monitored, and reconnected."""

    def __init__(self, engine: Engine, setup: ChannelSpec, timer: Timer) -> None:
        self._engine, self._spec, self._timer = engine, setup, timer
        self._stopping = asyncio.Event()
        self._monitor = DeliveryMonitor(engine.deliveries, setup.name, setup.limits)
        self._platform = setup.kind
        #: The last error that was logged as a warning.
        self._last_error: str | None = None
        self._set_health(ChannelState.CONNECTING)

    def stop(self) -> None:
        """Stop receiving; ``run`` returns once pending deliveries have arrived."""
        self._stopping.set()

    async def run(self) -> None:
        """Run the channel until it is stopped."""
        watching = asyncio.create_task(self._monitor_deliveries(), name=f"watch:{self._spec.name}")
        try:
            await self._run_until_stopped()
        finally:
            watching.cancel()

    async def _run_until_stopped(self) -> None:
        pause = 0.0
        while not self._stopping.is_set():
            begun = self._timer.monotonic()
            error = await self._run_once()
            if error is None:
                return
            if self._timer.monotonic() - begun > LONGEST_PAUSE:
                pause = 0.0
            pause = min(LONGEST_PAUSE, max(_initial_pause(error), pause * 2))
            self._report_error(error, pause)
            await self._sleep_or_stop(pause * random.uniform(0.8, 1.2))

    async def _sleep_or_stop(self, seconds: float) -> None:
        told = asyncio.ensure_future(self._stopping.wait())
        slept = asyncio.ensure_future(self._timer.sleep(seconds))
        await asyncio.wait({told, slept}, return_when=asyncio.FIRST_COMPLETED)
        for task in (told, slept):
            task.cancel()

    async def _run_once(self) -> Exception | None:
        """Run the channel once; return the error that ended it, or ``None`` if it was stopped."""
        try:
            channel = self._create_channel()
            self._platform = channel.platform
            largest = channel.capabilities.max_file_bytes
            self._engine.feature_context.largest_files[channel.platform] = largest
            account = ChannelAccount(channel=channel.platform, account=channel.account)
            async with self._hold_account(account):
                if self._stopping.is_set():
                    return None
                self._mark_connecting()
                async with _connect_channel(channel):
                    await self._serve_connection(channel, account)
        except ClewError as error:
            return error
        except Exception as error:  # the place per channel: it is restarted, others continue
            log.exception("channel_broke", channel=self._spec.name)
            return error
        return None

    def _create_channel(self) -> Channel:
        try:
            return self._spec.create_channel()
        except ClewError:
            raise
        except Exception as error:
            # Third-party code may raise anything: only a person can fix that.
            if self._last_error is None:
                log.exception("channel_not_loaded", channel=self._spec.name)
            what = f"[channels.{self._spec.name}] cannot be loaded"
            raise SettingsError(f"{what}: {type(error).__name__}: {error}") from error

    async def _monitor_deliveries(self) -> None:
        """Check the delivery backlog periodically, also while disconnected."""
        while True:
            if self._engine.channels[self._spec.name].state is not ChannelState.STANDBY:
                try:
                    await self._monitor.check_backlog(self._platform, self._spec.label)
                except StoreError as error:
                    log.info("store_failed", task="deliveries", error=str(error))
                self._publish_delivery_health()
            await self._timer.sleep(MONITOR_INTERVAL)

    def _publish_delivery_health(self) -> None:
        health = self._engine.channels[self._spec.name]
        shown = replace(health, deliveries=self._monitor.health)
        self._engine.channels[self._spec.name] = shown

    def _report_error(self, error: Exception, pause: float) -> None:
        known = isinstance(error, ClewError)
        text = str(error) if known else f"an internal error ({type(error).__name__})"
        refused = isinstance(error, (AccountRefused, AccountInUse, SettingsError))
        self._set_health(ChannelState.REFUSED if refused else ChannelState.DEGRADED, text)
        # One warning per reason: attempts are repeated indefinitely.
        tell = log.info if text == self._last_error else log.warning
        self._last_error = text
        tell("channel_down", channel=self._spec.name, error=text, again_in=round(pause, 1))

    def _mark_connecting(self) -> None:
        # A channel that failed stays what it is, with its reason, while it is tried again.
        if self._engine.channels[self._spec.name].state not in _FAILED:
            self._set_health(ChannelState.CONNECTING)

    def _set_health(self, state: ChannelState, error: str | None = None) -> None:
        before = self._engine.channels.get(self._spec.name)
        since = datetime.now(UTC) if before is None or before.state is not state else before.since
        health = ChannelHealth(state=state, since=since, error=error)
        if before is not None:
            health = replace(
                health,
                heard_at=before.heard_at,
                event_at=before.event_at,
                deliveries=self._monitor.health,
            )
        self._engine.channels[self._spec.name] = health

    def _record_activity(self, events: Sequence[ChannelEvent]) -> None:
        now = datetime.now(UTC)
        health = replace(self._engine.channels[self._spec.name], heard_at=now)
        self._engine.channels[self._spec.name] = replace(health, event_at=now) if events else health

    # The right to the account

    @asynccontextmanager
    async def _hold_account(self, account: ChannelAccount) -> AsyncGenerator[None]:
        """Wait for the exclusive right to an account, and keep it."""
        name = f"channel:{account.channel}:{account.account}"
        told = ""
        while (
            holder := await self._engine.locks.acquire(name, duration=ACCOUNT_LOCK_DURATION)
        ) is not None:
            self._set_health(ChannelState.STANDBY, f"it is run by {holder}")
            if holder != told:
                told = holder
                log.info("channel_stands_by", channel=self._spec.name, holder=holder)
            await self._sleep_or_stop(_STANDBY_INTERVAL)
            if self._stopping.is_set():
                yield
                return
        me = asyncio.current_task()
        assert me is not None
        keeping = asyncio.create_task(
            self._renew_account(name, me), name=f"right:{self._spec.name}"
        )
        try:
            yield
        except asyncio.CancelledError:
            if keeping.done() and not keeping.cancelled():
                me.uncancel()
                raise NotSent("another process took the account over") from None
            raise
        finally:
            keeping.cancel()
            with suppress(StoreError):
                await self._engine.locks.release(name)

    async def _renew_account(self, name: str, me: asyncio.Task[object]) -> None:
        """Renew the right to the account; cancel the channel when it is lost."""
        last = self._timer.monotonic()
        while True:
            await asyncio.sleep(_RENEW_INTERVAL)
            try:
                # A store that does not answer counts as unavailable.
                async with asyncio.timeout(_STORE_TIMEOUT):
                    holder = await self._engine.locks.acquire(name, duration=ACCOUNT_LOCK_DURATION)
            except (StoreError, TimeoutError):
                if self._timer.monotonic() - last < ACCOUNT_LOCK_DURATION.total_seconds() / 2:
                    continue
                holder = "unknown"
            if holder is not None:
                me.cancel()
                return
            last = self._timer.monotonic()

    # One connection

    async def _serve_connection(self, channel: Channel, account: ChannelAccount) -> None:
        deliveries = self._engine.deliveries
        line = PlatformClient(channel, account, deliveries, self._timer)
        await line.restore_pauses()
        previews = PreviewRegistry(deliveries)
        progress = PreviewStreamer(
            self._engine, line, previews, self._timer, stream=self._spec.stream
        )
        router = Router(self._engine, line, progress, self._spec.policy, self._spec.commands)
        sender = DeliverySender(
            deliveries, line, previews, self._engine.channel_inbox.migrate_chat, self._monitor
        )
        lanes = DeliveryWorker(deliveries, line, sender, self._timer, label=self._spec.label)
        await router.recover()
        self._set_health(ChannelState.CONNECTED)
        self._last_error = None
        log.info("channel_ready", channel=self._spec.name, account=account.account)
        out = asyncio.create_task(_restart_forever(lanes.run), name=f"deliver:{self._spec.name}")
        try:
            await self._receive_until_stopped(channel, router)
            await self._finish_turns(lanes)
        finally:
            out.cancel()
            await router.close(DRAIN_TIMEOUT / 2)
            await progress.close()
            await lanes.drain(DRAIN_TIMEOUT)

    async def _finish_turns(self, lanes: DeliveryWorker) -> None:
        """Let turns end and answers arrive, up to a limit; the rest stays stored."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_TIMEOUT):
                await self._engine.wait_until_idle()
        with suppress(TimeoutError, StoreError):
            async with asyncio.timeout(FINISH_TIMEOUT):
                await lanes.flush()

    async def _receive_until_stopped(self, channel: Channel, router: Router) -> None:
        """Receive events until stopped; reconnect after a lost connection."""
        pause = 0.0
        while not self._stopping.is_set():
            heard_at = self._engine.channels[self._spec.name].heard_at
            try:
                await self._receive_batches(channel, router)
            except (AccountRefused, AccountInUse, _ConnectionSilent):
                raise
            except ChannelError as error:
                heard = self._engine.channels[self._spec.name].heard_at != heard_at
                pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 0.0 if heard else pause * 2))
                self._report_error(error, pause)
                await self._sleep_or_stop(pause * random.uniform(0.8, 1.2))

    async def _receive_batches(self, channel: Channel, router: Router) -> None:
        async with aclosing(self._iter_batches(channel)) as batches:
            async for events in batches:
                self._set_health(ChannelState.CONNECTED)
                self._record_activity(events)
                await router.accept_batch(events)

    async def _iter_batches(self, channel: Channel) -> AsyncGenerator[Sequence[ChannelEvent]]:
        """Yield the channel's batches until stopped."""
        events = channel.receive()
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            while (batch := await _next_batch_or_stop(events, stopping)) is not None:
                yield batch
        finally:
            stopping.cancel()


async def _next_batch_or_stop(
    events: AsyncIterator[Sequence[ChannelEvent]], stopping: asyncio.Future[Any]
) -> Sequence[ChannelEvent] | None:
    """
    Return the next batch, or ``None`` when stopped.

    :raises ChannelError: if the platform is silent for too long
    """
    batch = asyncio.ensure_future(_next_batch(events))
    try:
        done, _ = await asyncio.wait(
            {batch, stopping}, timeout=SILENCE_TIMEOUT, return_when=asyncio.FIRST_COMPLETED
        )
    except asyncio.CancelledError:
        await cancel_and_wait(batch, grace=_CANCEL_GRACE)
        raise
    if batch in done:
        return batch.result()
    await cancel_and_wait(batch, grace=_CANCEL_GRACE)
    if stopping in done:
        return None
    raise _ConnectionSilent(f"the platform was silent for {SILENCE_TIMEOUT:g} s")


class _ConnectionSilent(ChannelError):
    """The connection is silent: only a new one helps."""


async def _next_batch(events: AsyncIterator[Sequence[ChannelEvent]]) -> Sequence[ChannelEvent]:
    try:
        return await anext(events)
    except StopAsyncIteration:
        raise ChannelError("the channel ended") from None


@asynccontextmanager
async def _connect_channel(channel: Channel) -> AsyncGenerator[None]:
    """Connect the channel in time, and disconnect it at the end."""
    await _await_within_limit(
        channel.__aenter__(), f"it did not connect within {CONNECT_TIMEOUT:g} s"
    )
    try:
        yield
    finally:
        with suppress(ChannelError):
            await _await_within_limit(channel.__aexit__(None, None, None), "it did not disconnect")


async def _await_within_limit(work: Coroutine[object, object, object], otherwise: str) -> None:
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=CONNECT_TIMEOUT)
    except asyncio.CancelledError:
        await cancel_and_wait(task, grace=_CANCEL_GRACE)
        raise
    if not done:
        await cancel_and_wait(task, grace=_CANCEL_GRACE)
        raise NotSent(otherwise)
    task.result()


def _initial_pause(error: Exception) -> float:
    waits = isinstance(error, (AccountRefused, AccountInUse, SettingsError))
    return REFUSED_PAUSE if waits else FIRST_PAUSE


async def _restart_forever(work: Callable[[], Coroutine[object, object, None]]) -> None:
    """Run a task while its channel runs; restart it when it fails."""
    throttle = LogThrottle()
    while True:
        try:
            await work()
        except StoreError as error:
            throttle.warn_store_failure(log, "store_failed", error, task="deliveries")
        except Exception:  # a bug of ours: deliveries are taken up again
            log.exception("task_failed", task="deliveries")
        await asyncio.sleep(FIRST_PAUSE)
