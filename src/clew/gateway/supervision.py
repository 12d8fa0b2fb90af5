"""Keeping one channel running, whatever happens to it; nothing of it reaches another."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from clew.core.health import ChannelHealth, ChannelState, DeliveryLimits
from clew.core.people import ChannelAccount
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
from clew.gateway.delivery import Lanes, Sender
from clew.gateway.line import Line
from clew.gateway.monitor import DeliveryMonitor
from clew.gateway.previews import Previews
from clew.gateway.progress import Progress
from clew.gateway.router import Manners, Router

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence

    from clew.core.chat import ChannelEvent
    from clew.engine.engine import Engine
    from clew.gateway.channel import Channel
    from clew.gateway.timer import Timer

log = structlog.get_logger(__name__)
T = TypeVar("T")

#: Seconds between two tries to connect: doubled up to the longest.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
#: Seconds until the next try where somebody has to do something first.
REFUSED_PAUSE = 60.0
#: Seconds for connecting, and for a sign of life while connected.
CONNECT, SILENCE = 30.0, 90.0
#: A task that does not end within so many seconds of its cancellation is left behind.
_GRACE = 5.0
#: How long the right to an account lasts, and how often it is extended.
RIGHT = timedelta(seconds=30)
_EXTEND = 8.0
#: Seconds for the store to say so: whoever cannot ask stops before the right is another's.
_ANSWER = 5.0
#: Seconds between two looks of a process that stands by.
_LOOK = 1.0
#: Seconds between two looks at what waits to be delivered.
WATCH = 15.0
#: Seconds for turns to end, and for their answers to arrive, when the gateway stops.
TURNS = 3.0
#: Seconds for a call that is under way when a channel stops.
DRAIN = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """One channel as the settings have it."""

    #: The name of its table.
    name: str
    make: Callable[[], Channel]
    manners: Manners
    label: str | None
    stream: bool
    #: The kind of channel: the platform, as long as there is no channel to ask.
    kind: str = ""
    limits: DeliveryLimits = field(default_factory=DeliveryLimits)


class Supervised:
    """One channel: connected, watched, and connected again."""

    def __init__(self, engine: Engine, setup: Setup, timer: Timer) -> None:
        self._engine, self._setup, self._timer = engine, setup, timer
        self._stopping = asyncio.Event()
        self._monitor = DeliveryMonitor(engine.deliveries, setup.name, setup.limits)
        self._platform = setup.kind
        #: Why it is not connected, as the log has it already.
        self._told: str | None = None
        self._health(ChannelState.CONNECTING)

    def stop(self) -> None:
        """Take nothing more in; ``run`` returns once what is on its way has arrived."""
        self._stopping.set()

    async def run(self) -> None:
        """Run the channel until told to stop."""
        watching = asyncio.create_task(self._watch(), name=f"watch:{self._setup.name}")
        try:
            await self._run()
        finally:
            watching.cancel()

    async def _run(self) -> None:
        pause = 0.0
        while not self._stopping.is_set():
            begun = self._timer.monotonic()
            error = await self._lived()
            if error is None:
                return
            if self._timer.monotonic() - begun > LONGEST_PAUSE:
                pause = 0.0
            pause = min(LONGEST_PAUSE, max(_first_pause(error), pause * 2))
            self._tell(error, pause)
            await self._pause(pause * random.uniform(0.8, 1.2))

    async def _pause(self, seconds: float) -> None:
        told = asyncio.ensure_future(self._stopping.wait())
        slept = asyncio.ensure_future(self._timer.sleep(seconds))
        await asyncio.wait({told, slept}, return_when=asyncio.FIRST_COMPLETED)
        for task in (told, slept):
            task.cancel()

    async def _lived(self) -> Exception | None:
        """One life of the channel; why it ended, unless it was told to."""
        try:
            channel = self._made()
            self._platform = channel.platform
            account = ChannelAccount(channel=channel.platform, account=channel.account)
            async with self._right_to(account):
                if self._stopping.is_set():
                    return None
                self._health(ChannelState.CONNECTING)
                async with _connected(channel):
                    await self._serve(channel, account)
        except ClewError as error:
            return error
        except Exception as error:
            log.exception("channel_broke", channel=self._setup.name)
            return error
        return None

    def _made(self) -> Channel:
        try:
            return self._setup.make()
        except ClewError:
            raise
        except Exception as error:
            # Somebody else's code, which fails as it likes: only a person can mend that.
            if self._told is None:
                log.exception("channel_not_loaded", channel=self._setup.name)
            what = f"[channels.{self._setup.name}] cannot be loaded"
            raise SettingsError(f"{what}: {type(error).__name__}: {error}") from error

    async def _watch(self) -> None:
        """Look after what is to be delivered, also while nothing is connected."""
        while True:
            if self._engine.channels[self._setup.name].state is not ChannelState.STANDBY:
                try:
                    await self._monitor.look(self._platform, self._setup.label)
                except StoreError as error:
                    log.info("store_failed", task="deliveries", error=str(error))
                self._show_deliveries()
            await self._timer.sleep(WATCH)

    def _show_deliveries(self) -> None:
        health = self._engine.channels[self._setup.name]
        shown = replace(health, deliveries=self._monitor.health)
        self._engine.channels[self._setup.name] = shown

    def _tell(self, error: Exception, pause: float) -> None:
        known = isinstance(error, ClewError)
        text = str(error) if known else f"an internal error ({type(error).__name__})"
        refused = isinstance(error, (AccountRefused, AccountInUse, SettingsError))
        self._health(ChannelState.REFUSED if refused else ChannelState.DEGRADED, text)
        # Once for each reason: it is tried again for as long as it takes.
        tell = log.info if text == self._told else log.warning
        self._told = text
        tell("channel_down", channel=self._setup.name, error=text, again_in=round(pause, 1))

    def _health(self, state: ChannelState, error: str | None = None) -> None:
        before = self._engine.channels.get(self._setup.name)
        since = datetime.now(UTC) if before is None or before.state is not state else before.since
        health = ChannelHealth(state=state, since=since, error=error)
        if before is not None:
            health = replace(
                health,
                heard_at=before.heard_at,
                event_at=before.event_at,
                deliveries=self._monitor.health,
            )
        self._engine.channels[self._setup.name] = health

    def _heard(self, events: Sequence[ChannelEvent]) -> None:
        now = datetime.now(UTC)
        health = replace(self._engine.channels[self._setup.name], heard_at=now)
        self._engine.channels[self._setup.name] = (
            replace(health, event_at=now) if events else health
        )

    # One process at a time

    @asynccontextmanager
    async def _right_to(self, account: ChannelAccount) -> AsyncGenerator[None]:
        """Wait for the sole right to an account, and keep it."""
        name = f"channel:{account.channel}:{account.account}"
        told = ""
        while (holder := await self._engine.locks.acquire(name, duration=RIGHT)) is not None:
            self._health(ChannelState.STANDBY, f"it is run by {holder}")
            if holder != told:
                told = holder
                log.info("channel_stands_by", channel=self._setup.name, holder=holder)
            await self._pause(_LOOK)
            if self._stopping.is_set():
                yield
                return
        me = asyncio.current_task()
        assert me is not None
        keeping = asyncio.create_task(self._keep(name, me), name=f"right:{self._setup.name}")
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

    async def _keep(self, name: str, me: asyncio.Task[object]) -> None:
        """Extend the right; cancels the channel when it is lost."""
        last = self._timer.monotonic()
        while True:
            await asyncio.sleep(_EXTEND)
            try:
                # A store that answers nothing is one that cannot be asked.
                async with asyncio.timeout(_ANSWER):
                    holder = await self._engine.locks.acquire(name, duration=RIGHT)
            except (StoreError, TimeoutError):
                if self._timer.monotonic() - last < RIGHT.total_seconds() / 2:
                    continue
                holder = "unknown"
            if holder is not None:
                me.cancel()
                return
            last = self._timer.monotonic()

    # One life

    async def _serve(self, channel: Channel, account: ChannelAccount) -> None:
        deliveries = self._engine.deliveries
        line = Line(channel, account, deliveries, self._timer)
        await line.remember()
        previews = Previews(deliveries)
        progress = Progress(self._engine, line, previews, self._timer, stream=self._setup.stream)
        router = Router(self._engine, line, progress, self._setup.manners)
        sender = Sender(
            deliveries, line, previews, self._engine.channel_inbox.migrate_chat, self._monitor
        )
        lanes = Lanes(deliveries, line, sender, self._timer, label=self._setup.label)
        await router.begin()
        self._health(ChannelState.CONNECTED)
        self._told = None
        log.info("channel_ready", channel=self._setup.name, account=account.account)
        out = asyncio.create_task(_kept(lanes.run), name=f"deliver:{self._setup.name}")
        try:
            await self._listen(channel, router)
            await self._finish(lanes)
        finally:
            out.cancel()
            await router.close(DRAIN / 2)
            await progress.close()
            await lanes.drain(DRAIN)

    async def _finish(self, lanes: Lanes) -> None:
        """Let turns end and their answers arrive, up to a limit; the rest is stored."""
        with suppress(TimeoutError):
            async with asyncio.timeout(TURNS):
                await self._engine.wait_until_idle()
        with suppress(TimeoutError, StoreError):
            async with asyncio.timeout(TURNS):
                await lanes.flush()

    async def _listen(self, channel: Channel, router: Router) -> None:
        """Take in what is told until told to stop; a lost connection is taken up again."""
        pause = 0.0
        while not self._stopping.is_set():
            heard_at = self._engine.channels[self._setup.name].heard_at
            try:
                await self._take(channel, router)
            except (AccountRefused, AccountInUse, _Silent):
                raise
            except ChannelError as error:
                heard = self._engine.channels[self._setup.name].heard_at != heard_at
                pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 0.0 if heard else pause * 2))
                self._tell(error, pause)
                await self._pause(pause * random.uniform(0.8, 1.2))

    async def _take(self, channel: Channel, router: Router) -> None:
        async with aclosing(self._batches(channel)) as batches:
            async for events in batches:
                self._health(ChannelState.CONNECTED)
                self._heard(events)
                await router.take(events)

    async def _batches(self, channel: Channel) -> AsyncGenerator[Sequence[ChannelEvent]]:
        """What the channel tells, until told to stop."""
        events = channel.receive()
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            while (batch := await _in_life(events, stopping)) is not None:
                yield batch
        finally:
            stopping.cancel()


async def _in_life(
    events: AsyncIterator[Sequence[ChannelEvent]], stopping: asyncio.Future[Any]
) -> Sequence[ChannelEvent] | None:
    """The next batch; ``None`` when told to stop. One that shows no life is given up."""
    batch = asyncio.ensure_future(_next(events))
    try:
        done, _ = await asyncio.wait(
            {batch, stopping}, timeout=SILENCE, return_when=asyncio.FIRST_COMPLETED
        )
    except asyncio.CancelledError:
        await _ended(batch)
        raise
    if batch in done:
        return batch.result()
    await _ended(batch)
    if stopping in done:
        return None
    raise _Silent(f"the platform was silent for {SILENCE:g} s")


class _Silent(ChannelError):
    """The connection shows no life: only a new one helps."""


async def _next(events: AsyncIterator[Sequence[ChannelEvent]]) -> Sequence[ChannelEvent]:
    try:
        return await anext(events)
    except StopAsyncIteration:
        raise ChannelError("the channel ended") from None


async def _ended(task: asyncio.Future[T]) -> None:
    """Cancel a task and wait for its end, but not for ever: not everything can be cancelled."""
    task.cancel()
    await asyncio.wait({task}, timeout=_GRACE)
    if not task.done():
        log.warning("task_left_behind", task=str(task))
    elif not task.cancelled():
        task.exception()


@asynccontextmanager
async def _connected(channel: Channel) -> AsyncGenerator[None]:
    """The channel, connected in time or not at all."""
    await _in_time(channel.__aenter__(), f"it did not connect within {CONNECT:g} s")
    try:
        yield
    finally:
        with suppress(ChannelError):
            await _in_time(channel.__aexit__(None, None, None), "it did not disconnect")


async def _in_time(work: Coroutine[object, object, object], otherwise: str) -> None:
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=CONNECT)
    except asyncio.CancelledError:
        await _ended(task)
        raise
    if not done:
        await _ended(task)
        raise NotSent(otherwise)
    task.result()


def _first_pause(error: Exception) -> float:
    waits = isinstance(error, (AccountRefused, AccountInUse, SettingsError))
    return REFUSED_PAUSE if waits else FIRST_PAUSE


async def _kept(work: Callable[[], Coroutine[object, object, None]]) -> None:
    """Run something for as long as its channel lives: where it fails it is begun again."""
    throttle = LogThrottle()
    while True:
        try:
            await work()
        except StoreError as error:
            throttle.warn_store_failure(log, "store_failed", error, task="deliveries")
        except Exception:
            log.exception("task_failed", task="deliveries")
        await asyncio.sleep(FIRST_PAUSE)
