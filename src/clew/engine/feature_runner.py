"""Services and periodic work of features: supervised tasks beside the turns."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Self

import structlog

from clew.background import cancel_and_wait
from clew.engine.feature_tables import FeatureTables
from clew.engine.log_throttle import LogThrottle
from clew.errors import StoreError
from clew.plugin.declarations import PeriodicWork, Service
from clew.store.transactions import locks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from clew.core.ids import OwnerId
    from clew.plugin.context import FeatureContext
    from clew.plugin.registry import Declared, Features

log = structlog.get_logger(__name__)

#: Seconds before a task that ended is run again; doubled with each end in a row.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
#: Seconds after which a run counts as healthy.
_HEALTHY_AFTER = 60.0
#: Duration of the right to run in one place only; renewed at half that time.
LEADER_LOCK_DURATION = timedelta(seconds=30)


class FeatureRunner:
    """
    Runs the services and the periodic work of features inside ``async with``.

    One that fails is logged and run again; it touches nothing else.
    """

    def __init__(
        self,
        features: Features,
        context: FeatureContext,
        owner: OwnerId,
        *,
        longest_pause: float = LONGEST_PAUSE,
        lock_duration: timedelta = LEADER_LOCK_DURATION,
    ) -> None:
        self._features, self._context, self._owner = features, context, owner
        self._longest_pause, self._lock_duration = longest_pause, lock_duration
        self._tables = FeatureTables(features)
        self._throttle = LogThrottle()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for service in self._features.get(Service):
            self._start(service.value.name, partial(self._run_service, service))
        for work in self._features.get(PeriodicWork):
            self._start(work.value.name, partial(self._run_periodically, work))
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await cancel_and_wait(*self._tasks)

    def _start(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(self._supervise(name, run), name=f"feature:{name}"))

    async def _supervise(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a task again whenever it ends."""
        pause = min(FIRST_PAUSE, self._longest_pause)
        while True:
            started = time.monotonic()
            try:
                await run()
            except (Exception, SystemExit) as error:
                # A feature may raise anything: its task is run again, others continue.
                if self._throttle.is_due((name, type(error))):
                    log.warning("feature_failed", task=name, exc_info=error)
            if time.monotonic() - started > _HEALTHY_AFTER:
                pause = min(FIRST_PAUSE, self._longest_pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._longest_pause)

    async def _run_service(self, declared: Declared[Service]) -> None:
        service = declared.value
        if not await self._has_tables(declared.owner):
            await asyncio.sleep(self._longest_pause)
            return
        if service.where == "each":
            await service.run(self._context)
            return
        place = f"@{socket.gethostname()}" if service.where == "host" else ""
        await self._run_while_leading(f"service:{service.name}{place}", service)

    async def _run_while_leading(self, lock: str, service: Service) -> None:
        """Run a service while this process holds its lock; return if another one does."""
        period = self._lock_duration.total_seconds() / 2
        if not await self._lead(lock, self._lock_duration):
            await asyncio.sleep(period)
            return
        running = asyncio.create_task(self._start_service(service), name=lock)
        try:
            while not running.done() and await self._lead(lock, self._lock_duration):
                await asyncio.wait({running}, timeout=period)
        finally:
            try:
                await cancel_and_wait(running)
            finally:
                with suppress(StoreError):
                    await self._context.store.write(locks.release_lock, lock, self._owner)
        if not running.cancelled():
            running.result()

    async def _start_service(self, service: Service) -> None:
        await service.run(self._context)

    async def _run_periodically(self, declared: Declared[PeriodicWork]) -> None:
        work = declared.value
        while True:
            if await self._has_tables(declared.owner) and await self._lead(
                f"periodic:{work.name}", 2 * work.every
            ):
                await work.run(self._context)
            await asyncio.sleep(work.every.total_seconds())

    async def _has_tables(self, feature: str) -> bool:
        return await self._tables.are_there(self._context.store, feature)

    async def _lead(self, lock: str, duration: timedelta) -> bool:
        holder = await self._context.store.write(
            locks.acquire_process_lock, lock, self._owner, duration=duration
        )
        return holder is None
