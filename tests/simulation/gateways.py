"""Gateways: lives of engines over the disk, and the network before them."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from clew import runtime
from clew.agent.failover import ModelChain, RetryPolicy
from clew.agent.loop import AgentLoop
from clew.clock import EPOCH
from clew.core.ids import IdGenerator
from clew.engine.compaction import CompactionPolicy, CompactionService
from clew.engine.engine import Engine
from clew.errors import StoreError
from clew.hooks.manager import PluginManager
from clew.plugin.registry import Features
from tests.contract.lifecycle.doubles import Summariser
from tests.simulation.disk import BEGINNING, SimStore
from tests.simulation.loop import context_of
from tests.simulation.provider import make_agent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextvars import Context

    from clew.engine.services import EngineServices
    from tests.simulation.world import World

T = TypeVar("T")

LEASE = timedelta(seconds=6)


class Unreachable(Exception):
    """No answer came: whether the request was carried out is unknown."""


class SkewedClock:
    """The clock of one machine, which is wrong by its own amount."""

    def __init__(self, loop: asyncio.AbstractEventLoop, skew: float) -> None:
        self._loop, self._skew = loop, skew

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=BEGINNING / 1000 + self._loop.time() + self._skew)

    def monotonic(self) -> float:
        return self._loop.time()

    def millis(self) -> int:
        """Return ``now`` in milliseconds."""
        return BEGINNING + round((self._loop.time() + self._skew) * 1000)


class Gateway:
    """A machine that runs one life of a gateway after the other."""

    def __init__(self, world: World, name: str, *, skew: float) -> None:
        self._world, self.name = world, name
        self.clock = SkewedClock(world.loop, skew)
        self._life = 0
        self.process = ""
        self.context: Context | None = None
        self.engine: Engine | None = None
        self._store: SimStore | None = None
        self._stopping: asyncio.Event | None = None
        self._open: dict[asyncio.Future[Any], None] = {}

    def boot(self) -> None:
        """Begin a new life."""
        if self.context is not None:
            return
        self._life += 1
        self.process = f"{self.name}.{self._life}"
        self.context = context_of(self.process)
        self.context.run(self._start)

    def _start(self) -> None:
        task = asyncio.create_task(self._live(), name=self.process)
        self._task = task

    async def _live(self) -> None:
        self._stopping = asyncio.Event()
        while not self._stopping.is_set():
            store = self._store = SimStore(self._world.disk, self._world.loop)
            services = make_services(self._world, store, self.clock)
            try:
                async with Engine(services, role="serve", version="0") as engine:
                    self.engine = engine
                    await self._stopping.wait()
                    self.engine = None
            except StoreError:
                # Started while the store was away: the supervisor starts it again.
                self.engine = None
                await asyncio.sleep(1.0)
            await store.aclose()
        self._gone()

    @property
    def is_stopping(self) -> bool:
        """Return whether it was asked to end, and has not."""
        return self._stopping is not None and self._stopping.is_set()

    def stop(self) -> None:
        """Ask it to end, as SIGTERM does."""
        if self._stopping is not None:
            self._stopping.set()

    def crash(self) -> None:
        """End it at once, wherever it is."""
        if self.context is None:
            return
        self._world.loop.kill(self.process)
        if self._store is not None:
            self._store.drop()
        self._gone()

    def _gone(self) -> None:
        self.engine, self.context, self._stopping = None, None, None
        for request in self._open:
            if not request.done():
                request.set_exception(Unreachable())
                # Its caller may have given up before.
                request.exception()
        self._open.clear()

    async def call(self, work: Callable[[Engine], Awaitable[T]], *, patience: float = 15.0) -> T:
        """
        Have something done through the network.

        :raises Unreachable: if no answer came
        """
        loop, chances = self._world.loop, self._world.chances
        answer: asyncio.Future[T] = loop.create_future()
        self._open[answer] = None
        times = 2 if chances.fault("request repeated") else 1
        for _ in range(0 if chances.fault("request lost") else times):
            loop.call_later(
                chances.delay(0.05), self._receive, work, answer, context=self._world.disk.world
            )
        try:
            return await asyncio.wait_for(answer, patience)
        except TimeoutError:
            raise Unreachable from None
        finally:
            self._open.pop(answer, None)

    def _receive(self, work: Callable[[Engine], Awaitable[T]], answer: asyncio.Future[T]) -> None:
        if (engine := self.engine) is None or self.context is None:
            if not answer.done():
                answer.set_exception(Unreachable())
            return
        self.context.run(lambda: asyncio.create_task(self._serve(engine, work, answer)))

    async def _serve(
        self, engine: Engine, work: Callable[[Engine], Awaitable[T]], answer: asyncio.Future[T]
    ) -> None:
        result: T | None = None
        failure: Exception | None = None
        try:
            result = await work(engine)
        except Exception as error:  # noqa: BLE001  (raised to the client)
            failure = error
        if not self._world.chances.fault("reply lost"):
            self._world.loop.call_later(
                self._world.chances.delay(0.05), _resolve, answer, result, failure,
                context=self._world.disk.world,
            )  # fmt: skip


def _resolve(answer: asyncio.Future[Any], result: object, failure: Exception | None) -> None:
    with contextlib.suppress(asyncio.InvalidStateError):
        if failure is None:
            answer.set_result(result)
        else:
            answer.set_exception(failure)


def make_services(world: World, store: SimStore, clock: SkewedClock) -> EngineServices:
    """Return the services of a process, as the composition root makes them, with doubles."""
    plugins = PluginManager()
    means = runtime.build_services(world.settings, store, Features(), plugins)
    ids = IdGenerator(clock.millis)
    model = world.provider.make_model()
    patience = RetryPolicy(first_wait=0.2)
    compaction = CompactionService(
        store, ids, clock, compactor=Summariser(seconds=0.3), model=model,
        policy=CompactionPolicy(enabled=True, threshold=0.9, keep_recent=0.3, window=20_000),
    )  # fmt: skip
    return replace(
        means,
        ids=ids,
        loop=AgentLoop(make_agent(world.chances, world.acted), max_steps=20),
        models=ModelChain([model], patience, world.loop.time),
        compaction=compaction,
        lease_duration=LEASE,
    )
