"""One seed: gateways, people and fate in one virtual world."""

from __future__ import annotations

import asyncio
import functools
import gc
import random
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from clew.config import load_settings
from clew.core import ids
from clew.engine import process
from clew.record import Record
from tests.simulation.chances import Chances
from tests.simulation.disk import Disk
from tests.simulation.facts import Facts
from tests.simulation.gateways import Gateway
from tests.simulation.loop import NothingLeft, VirtualLoop, context_of
from tests.simulation.people import People, plan_deeds
from tests.simulation.provider import Provider
from tests.simulation.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from clew.config import Settings
    from clew.store.contract import Tx

#: Virtual seconds after the last deed in which everything must have come to an end.
_PATIENCE = 900.0
_FATES = {
    "crash": 3, "crash in the middle": 8, "pause": 4, "pause in the middle": 6, "restart": 2,
    "clock jump": 2, "outage": 1, "proof of life lost": 5,
}  # fmt: skip


class Size(Record):
    """How much happens in one seed."""

    gateways: int = 3
    rooms: int = 5
    messages: int = 60
    #: Invariants are checked after each n-th commit.
    every: int = 20


class Fate(Record):
    """A planned fault."""

    at: float
    kind: str
    gateway: int
    amount: float


@dataclass(kw_only=True)
class Report:
    """What came of a seed."""

    seed: int
    turns: int = 0
    steps: int = 0
    checks: int = 0
    virtual: float = 0.0
    faults: Counter[str] = field(default_factory=Counter[str])
    happened: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    wrong: list[str] = field(default_factory=list[str])
    digest: str = ""
    trace: list[str] | None = None
    facts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@functools.cache
def _settings() -> Settings:
    home = Path(tempfile.mkdtemp(prefix="clew-simulation-"))
    return load_settings(home=home, flags={"model.name": "offline"}, environ={})


class World:
    """The parts of one seed."""

    def __init__(
        self, seed: int, size: Size, *, left_out: Collection[int] = (), trace: bool = False
    ) -> None:
        self.chances = Chances(seed, left_out)
        self.chances.lines = [] if trace else None
        self.settings = _settings()
        self.loop = VirtualLoop(self.chances.order)
        self.disk = Disk(self.loop, self.chances)
        self.watch = Watch(self, every=size.every)
        self.disk.on_commit = self.watch.committed
        self.provider = Provider(self.chances, self.watch.sent)
        self.acted = self.watch.acted
        plan = self.chances.plan
        self.gateways = [
            Gateway(self, f"g{n}", skew=plan.uniform(-30.0, 30.0)) for n in range(size.gateways)
        ]
        self.deeds = plan_deeds(plan, rooms=size.rooms, messages=size.messages)
        self.people = People(self)
        self.fates = self._draw_fates(size)

    def _draw_fates(self, size: Size) -> list[Fate]:
        plan = self.chances.plan
        length = sum(deed.pause for deed in self.deeds) / size.rooms * 2
        kinds = plan.choices([*_FATES], [*_FATES.values()], k=max(1, round(length / 2.5)))
        return sorted(
            (
                Fate(
                    at=plan.random() * length, kind=kind, gateway=plan.randrange(size.gateways),
                    amount=plan.random(),
                )
                for kind in kinds
            ),
            key=lambda fate: fate.at,
        )  # fmt: skip

    def owner_of(self, process_name: str) -> str | None:
        """Return the owner id of a process that runs."""
        for gateway in self.gateways:
            if gateway.process == process_name and gateway.engine is not None:
                return gateway.engine.owner_id
        return None

    def calm_down(self) -> None:
        """Let no more faults happen, so that everything can come to an end."""
        self.chances.calm = True

    def _die(self, process_name: str) -> None:
        for gateway in self.gateways:
            if gateway.process == process_name:
                gateway.crash()
                self._boot_later(gateway)

    def _boot_later(self, gateway: Gateway) -> None:
        self.loop.call_later(self.chances.delay(8.0), gateway.boot, context=self.disk.world)

    def _befall(self, fate: Fate) -> None:
        if self.chances.calm or not self.chances.happen(fate.kind):
            return
        gateway = self.gateways[fate.gateway]
        self.chances.note(f"{self.loop.time():.6f} {fate.kind} {gateway.process}")
        match fate.kind:
            case "crash":
                gateway.crash()
                self._boot_later(gateway)
            case "crash in the middle":
                die = partial(self._die, gateway.process)
                self.loop.after_steps(gateway.process, 1 + round(fate.amount**2 * 400), die)
            case "pause":
                self._pause(gateway.process, 0.1 + 25.0 * fate.amount**2)
            case "pause in the middle":
                pause = partial(self._pause, gateway.process, 5.0 + 20.0 * fate.amount**2)
                self.loop.after_steps(gateway.process, 1 + round(fate.amount * 100), pause)
            case "restart":
                gateway.stop()
                self._boot_when_over(gateway)
            case "clock jump" | "outage":
                self._befall_host(fate)
            case _:
                for store in self.disk.stores:
                    if store.process == gateway.process:
                        store.lose_proof()

    def _befall_host(self, fate: Fate) -> None:
        if fate.kind == "clock jump":
            self.disk.jumped += round((fate.amount - 0.4) * 60_000)
        else:
            self.disk.away_until = self.loop.time() + 15.0 * fate.amount**2

    def _pause(self, name: str, seconds: float) -> None:
        self.loop.freeze(name)
        self.loop.call_later(seconds, self.loop.thaw, name, context=self.disk.world)

    def _boot_when_over(self, gateway: Gateway) -> None:
        gateway.boot()
        self.loop.call_later(1.0, self._keep_up, gateway, context=self.disk.world)

    def _keep_up(self, gateway: Gateway) -> None:
        if gateway.context is None:
            gateway.boot()
        elif gateway.is_stopping:
            self._boot_when_over(gateway)

    async def live(self) -> None:
        """Run everything to its end."""
        for gateway in self.gateways:
            gateway.boot()
        began = self.loop.time()
        for fate in self.fates:
            self.loop.call_at(began + fate.at, self._befall, fate, context=self.disk.world)
        work = asyncio.create_task(self.people.act(self.deeds), context=context_of("people"))
        ends = began + sum(deed.pause for deed in self.deeds) + _PATIENCE
        while not work.done() and not self.watch.complaints:
            if self.loop.time() > ends:
                self.watch.complain("some messages never came to an end")
            await asyncio.sleep(0.05)
        if work.done() and (error := work.exception()) is not None:
            self.watch.complain(f"a client got {error!r}")
        if not self.watch.complaints:
            self.watch.finish(self.people.said, self.people.deleted)


def _ignore(_: object) -> None:
    """Tell nobody."""


def _drop(*_: Any) -> Any:
    raise structlog.DropEvent


def run_seed(
    seed: int, size: Size | None = None, *, left_out: Collection[int] = (),
    deeds: Collection[int] | None = None, trace: bool = False, facts: bool = False,
) -> Report:  # fmt: skip
    """Run one seed; ``left_out`` leaves out faults, ``deeds`` keeps only some deeds."""
    with _apart(seed):
        world = World(seed, size or Size(), left_out=left_out, trace=trace)
        if deeds is not None:
            world.deeds = [deed for n, deed in enumerate(world.deeds) if n in deeds]
        _listen(world)
        if facts:
            world.watch.facts = Facts(world.disk)
            world.disk.on_run = world.watch.facts.ran
        try:
            world.loop.run_until_complete(world.live())
        except NothingLeft:
            world.watch.complain("everything waits, for ever")
        finally:
            _end(world)
        return _report(seed, world)


def _report(seed: int, world: World) -> Report:
    turns = world.disk.run(_count_turns)
    world.disk.connection.close()
    return Report(
        seed=seed, turns=turns, steps=world.loop.steps, checks=world.watch.checks,
        virtual=world.loop.time(), faults=world.chances.counts, happened=world.chances.happened,
        wrong=world.watch.complaints, digest=world.chances.digest, trace=world.chances.lines,
        facts=[] if world.watch.facts is None else world.watch.facts.told,
    )  # fmt: skip


def _count_turns(t: Tx) -> int:
    return t.fetch_value("SELECT count(*) FROM turn")


@contextmanager
def _apart(seed: int) -> Generator[None]:
    """Make this process the same for each run of a seed, and put it back afterwards."""
    random.seed(seed)
    ids._RANDOM.seed(seed)  # pyright: ignore[reportPrivateUsage]
    log, expose = structlog.get_config(), process.expose_session_environ
    gc.disable()
    gc.freeze()
    # It would change this process.
    process.expose_session_environ = nullcontext
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()
        process.expose_session_environ = expose
        structlog.configure(**log)


def _listen(world: World) -> None:
    def note(_: Any, method: str, event: Any) -> Any:
        if method in ("error", "exception", "critical"):
            error = sys.exc_info()[1]
            world.watch.complain(f"logged: {event.get('event')}: {error!r}")
            if world.chances.lines is not None and error is not None:
                world.chances.lines += traceback.format_exception(error)
        else:
            world.chances.note(f"logged: {event.get('event')}")
        raise structlog.DropEvent

    structlog.configure(
        processors=[note], wrapper_class=structlog.BoundLogger, cache_logger_on_first_use=False
    )


def _end(world: World) -> None:
    # What never ran to its end is closed by the collector, and complains in vain.
    structlog.configure(processors=[_drop], wrapper_class=structlog.BoundLogger)
    hook, sys.unraisablehook = sys.unraisablehook, _ignore
    try:
        world.loop.bury()
        world.loop.close()
        for gateway in world.gateways:
            vars(gateway).clear()
        gc.collect()
    finally:
        sys.unraisablehook = hook
