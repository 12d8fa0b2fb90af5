"""
Commands that outlive their gateways, on both databases.

``CLEW_SOAK_KILLS``, ``CLEW_SOAK_CALLS``, ``CLEW_SOAK_CHATS`` and ``CLEW_SOAK_SEED`` change the run;
``CLEW_SOAK_ONLY`` names one part of it: ``calls``, ``background``, ``output`` or ``chats``.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from clew.core.scope import LOCAL
from clew.features.shell import processes as rows_of
from clew.features.shell.processes import ProcessState
from clew.sandbox.process_folder import Life
from clew.store.checks.registry import find_all
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.integration.test_supervisor import read_memory, start, supervisor_of
from tests.killing import processes
from tests.killing.process_gateway import GatewayJob, open_gateway_store, run_gateway
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server
from tests.waiting import block_until, wait_until

if TYPE_CHECKING:
    from clew.features.shell.processes import ShellProcess
    from clew.store.contract import Store, Tx
    from clew.testing import ProviderRequest, Reply

KILLS = int(os.environ.get("CLEW_SOAK_KILLS", "200"))
#: Calls that each kill interrupts.
CALLS = int(os.environ.get("CLEW_SOAK_CALLS", "1"))
CHATS = int(os.environ.get("CLEW_SOAK_CHATS", "300"))
SEED = int(os.environ.get("CLEW_SOAK_SEED", "1"))
ONLY = os.environ.get("CLEW_SOAK_ONLY", "")
BACKGROUND, BACKGROUND_KILLS = 50, 20
_GIGABYTE = 1_000_000_000
#: Seconds for everything to end at the end of a part.
_PATIENCE = 900

Row = tuple[str, str, str, bool]
Part = Callable[[str, str, Path], Iterator[Row]]


def run() -> Table:
    with server() as url:
        parts = [part for part in PARTS if ONLY in ("", part[0].__name__.split("_")[-1])]
        found = [row for part, database in parts for row in _run_part(part, database, url)]
    if ONLY in ("", "output"):
        found += asyncio.run(_write_gigabyte())
        found.append(asyncio.run(_write_without_end()))
    return Table(
        title="commands that outlive their gateways",
        columns=("what", "measured", "must be", "holds"),
        rows=tuple((what, got, must, "yes" if holds else "NO") for what, got, must, holds in found),
        passed=all(holds for *_, holds in found),
    )


def _run_part(part: Part, database: str, url: str) -> list[Row]:
    with fresh(database, url) as (store, home):
        return [*part(database, store, home)]


class _Model:
    """A model that runs one command for each message, and remembers what it is told."""

    def __init__(self, make_call: Callable[[str], ScriptedCall]) -> None:
        self._make_call = make_call
        self.told: dict[str, set[str]] = defaultdict(set)

    def __call__(self, request: ProviderRequest) -> Reply:
        said = [one.text for one in request.messages if re.fullmatch(r"(go|hi) \d+", one.text)]
        last = request.messages[-1]
        if not last.results:
            return Calls((self._make_call(last.text),)) if last.text in said else Text("noted")
        self.told[said[-1]] |= {result.text for result in last.results}
        return Text("done")


def _kill_calls(database: str, store: str, home: Path) -> Iterator[Row]:
    """Kill a gateway in the middle of its calls; the next one continues them."""
    dice, work = random.Random(SEED), home / "work"
    names = [f"go {number}" for number in range(KILLS * CALLS)]

    def call(text: str) -> ScriptedCall:
        line = (
            f"echo run >> runs; touch begun; sleep {dice.uniform(0.3, 2):.2f}; echo {text}; exit 3"
        )
        return ScriptedCall("shell", {"command": line})

    model = _Model(call)
    with FakeProvider(model) as provider:
        job = GatewayJob(home=home, store_url=store, provider=provider.openai_url)
        for kill in range(KILLS):
            batch = tuple(names[kill * CALLS : (kill + 1) * CALLS])
            wanted = (kill + 1) * CALLS
            gateway = processes.fork(run_gateway, _with(job, batch))
            block_until(lambda wanted=wanted: len([*work.glob("*/begun")]) == wanted)
            time.sleep(dice.uniform(0, 0.3))
            gateway.kill()
            processes.ended(gateway)
        gateway = processes.fork(run_gateway, job)
        block_until(lambda: model.told.keys() == {*names}, seconds=_PATIENCE)
        processes.send(gateway, signal.SIGTERM)
        processes.ended(gateway)
    runs = Counter(len(one.read_text().split()) for one in work.glob("*/runs"))
    right = [
        name
        for name in names
        if len(model.told[name]) == 1
        and re.match(rf"{name}\n\[exit code 3, ", next(iter(model.told[name])))
    ]
    findings = asyncio.run(_check(job))
    total = len(names)
    yield (
        f"{database}: commands that ran once, of {total} whose gateway was killed",
        str(runs[1]),
        str(total),
        runs == {1: total},
    )
    yield (
        f"{database}: calls that got the output and the code of their command",
        str(len(right)),
        str(total),
        len(right) == total,
    )
    yield f"{database}: findings of fsck", str(findings), "0", not findings


def _kill_background(database: str, store: str, home: Path) -> Iterator[Row]:
    """Kill gateways while commands end in the background."""
    dice = random.Random(SEED)
    names = tuple(f"go {number}" for number in range(BACKGROUND))

    def call(text: str) -> ScriptedCall:
        code = int(text.split()[1]) % 7
        line = f"echo run >> runs; sleep {dice.uniform(15, 70):.1f}; echo {text}; exit {code}"
        return ScriptedCall("shell", {"command": line, "background": True})

    with FakeProvider(_Model(call)) as provider:
        job = GatewayJob(home=home, store_url=store, provider=provider.openai_url, messages=names)
        for kill in range(BACKGROUND_KILLS):
            gateway = processes.fork(run_gateway, job)
            if not kill:  # a turn that is interrupted three times ends without its command
                block_until(lambda: len([*(home / "work").glob("*/runs")]) == BACKGROUND)
            time.sleep(dice.uniform(0.5, 3))
            gateway.kill()
            processes.ended(gateway)
        gateway = processes.fork(run_gateway, job)
        told = asyncio.run(_wait_for_completions(job))
        processes.send(gateway, signal.SIGTERM)
        processes.ended(gateway)
    right = sum(
        any(f"\n{name}\n[exit code {int(name.split()[1]) % 7}, " in text for text in told)
        for name in names
    )
    runs = Counter(len(one.read_text().split()) for one in (home / "work").glob("*/runs"))
    findings = asyncio.run(_check(job))
    yield (
        f"{database}: completions of {BACKGROUND} commands over {BACKGROUND_KILLS} kills",
        str(len(told)),
        str(BACKGROUND),
        len(told) == BACKGROUND,
    )
    yield (
        f"{database}: of these with the right output and code",
        str(right),
        str(BACKGROUND),
        right == BACKGROUND and runs == {1: BACKGROUND},
    )
    yield f"{database}: findings of fsck", str(findings), "0", not findings


def _with(job: GatewayJob, messages: tuple[str, ...]) -> GatewayJob:
    return GatewayJob(
        home=job.home, store_url=job.store_url, provider=job.provider, messages=messages
    )


async def _wait_for_completions(job: GatewayJob) -> list[str]:
    async with await open_gateway_store(job) as store:

        async def are_all_told() -> bool:
            return await store.read(_count_told) == BACKGROUND

        await wait_until(are_all_told, seconds=_PATIENCE)
        return await store.read(_read_completions)


def _count_told(t: Tx) -> int:
    return t.fetch_value("SELECT count(*) FROM shell_process WHERE woken IS NOT NULL")


def _read_completions(t: Tx) -> list[str]:
    return t.fetch_column("SELECT text FROM inbox WHERE kind = 'completion'")


async def _check(job: GatewayJob) -> int:
    async with await open_gateway_store(job) as store:
        found = await store.read(find_all)
    for one in found:
        print(one, flush=True)
    return len(found)


def _hold_chats(database: str, store: str, home: Path) -> Iterator[Row]:
    """Let many chats have a command each: with the gateway, without one, and with the next."""
    names = tuple(f"go {number}" for number in range(CHATS))

    def call(text: str) -> ScriptedCall:
        more = {"background": True} if text in names else {}
        return ScriptedCall("shell", {"command": "sleep 3600" if more else "true", **more})

    with FakeProvider(_Model(call)) as provider:
        job = GatewayJob(home=home, store_url=store, provider=provider.openai_url)
        idle = processes.fork(run_gateway, _with(job, tuple(f"hi {n}" for n in names)))
        asyncio.run(_wait_for_turns(job, CHATS))
        before = _read_settled_memory(idle.pid)
        processes.send(idle, signal.SIGTERM)
        processes.ended(idle)
        watching_none = _measure_idle_gateway(job)
        gateway = processes.fork(run_gateway, _with(job, names))
        asyncio.run(_wait_for_running(job))
        after = _read_settled_memory(gateway.pid)
        begun = time.monotonic()
        processes.send(gateway, signal.SIGTERM)
        processes.ended(gateway)
        ending = time.monotonic() - begun
        alive = asyncio.run(_count_alive(job))
        watching_all = _measure_idle_gateway(job)
        begun = time.monotonic()
        gateway = processes.fork(run_gateway, job)
        watching = asyncio.run(_stop_all(job))
        processes.send(gateway, signal.SIGTERM)
        processes.ended(gateway)
    more, adopted = (watching_all - watching_none) / 1024, watching - begun
    yield (
        f"{database}: memory of a gateway with {CHATS} commands, more",
        f"{more:.1f} MB",
        "5 MB",
        more <= 5,
    )
    yield (
        f"{database}: after {CHATS} turns that begin one, more than after as many that wait",
        f"{(after - before) / 1024:.1f} MB",
        "(turns at once)",
        True,
    )
    yield f"{database}: end of the gateway after SIGTERM", f"{ending:.1f} s", "10 s", ending <= 10
    yield f"{database}: commands that run after that", str(alive), str(CHATS), alive == CHATS
    yield (
        f"{database}: the next gateway has adopted them after",
        f"{adopted:.1f} s",
        "2 s",
        adopted <= 2,
    )


def _measure_idle_gateway(job: GatewayJob) -> int:
    """Measure a gateway that begins no turn: what it has more than another is the commands."""
    gateway = processes.fork(run_gateway, job)
    found = _read_settled_memory(gateway.pid)
    processes.send(gateway, signal.SIGTERM)
    processes.ended(gateway)
    return found


def _read_settled_memory(process: int | None) -> int:
    assert process is not None
    time.sleep(5)
    return read_memory(process)


async def _wait_for_turns(job: GatewayJob, count: int) -> None:
    async with await open_gateway_store(job) as store:

        async def are_done() -> bool:
            return await store.read(_count_done) == count

        await wait_until(are_done, seconds=_PATIENCE, pause=0.5)


def _count_done(t: Tx) -> int:
    return t.fetch_value("SELECT count(*) FROM turn WHERE state = 'done'")


async def _list(store: Store) -> list[ShellProcess]:
    return await store.read(rows_of.list_processes, viewer=LOCAL, limit=10_000)


async def _wait_for_running(job: GatewayJob) -> None:
    async with await open_gateway_store(job) as store:

        async def are_running() -> bool:
            found = await _list(store)
            return [one.state for one in found] == [ProcessState.RUNNING] * CHATS

        await wait_until(are_running, seconds=_PATIENCE, pause=0.5)
    await _wait_for_turns(job, 2 * CHATS)


async def _count_alive(job: GatewayJob) -> int:
    from clew.features.shell.supervision import find_folder  # noqa: PLC0415
    from tests.killing.process_gateway import load_gateway_settings  # noqa: PLC0415

    settings = load_gateway_settings(job)
    async with await open_gateway_store(job) as store:
        found = await _list(store)
    return sum(find_folder(settings, one.id).look() is Life.ALIVE for one in found)


async def _stop_all(job: GatewayJob) -> float:
    """Ask for the end of one command and return when it was seen; then end all."""
    async with await open_gateway_store(job) as store:
        found = await _list(store)
        await store.write(rows_of.request_stop, found[0].id, "stopped by the soak")
        stop = job.home / "processes" / found[0].id / "stop"
        await wait_until(stop.exists, pause=0.02)
        seen = time.monotonic()
        for one in found:
            await store.write(rows_of.request_stop, one.id, "stopped by the soak")

        async def have_ended() -> bool:
            return not await store.read(rows_of.list_open)

        await wait_until(have_ended, seconds=_PATIENCE, pause=0.5)
    return seen


async def _write_gigabyte() -> list[Row]:
    """Let a command write a gigabyte, and look at what is kept of it."""
    with tempfile.TemporaryDirectory(prefix="clew-soak-") as folder:
        before = read_memory(os.getpid())
        place = await start(
            Path(folder),
            f"head -c {_GIGABYTE} /dev/zero | tr '\\0' x; echo last; sleep 600",
            output=500_000,
        )
        await wait_until(
            lambda: place.measure_output() == _GIGABYTE + 5, seconds=_PATIENCE, pause=0.5
        )
        kept = sum(one.stat().st_size for one in place.path.iterdir()) / 1e6
        supervisor = read_memory(supervisor_of(place)) / 1024
        last = place.read_range(None, 65_536)
        more = (read_memory(os.getpid()) - before) / 1024
        place.ask_to_stop("stopped")
        await place.wait(seconds=60)
    is_last = len(last.data) == 65_536 and last.data.endswith(b"xlast\n")
    return [
        ("1 GB of output: kept on the disk", f"{kept:.2f} MB", "2 MB", kept <= 2),
        ("1 GB of output: the last 64 KB can be read", str(is_last), "True", is_last),
        (
            "1 GB of output: memory of the supervisor",
            f"{supervisor:.1f} MB",
            "12 MB",
            supervisor <= 12,
        ),
        ("1 GB of output: memory of the gateway, more", f"{more:.1f} MB", "2 MB", more <= 2),
    ]


async def _write_without_end() -> Row:
    """Let a command write for ever, and see it stopped."""
    with tempfile.TemporaryDirectory(prefix="clew-soak-") as folder:
        place = await start(Path(folder), "cat /dev/zero", seconds=_PATIENCE)
        await place.wait(seconds=2 * _PATIENCE)
        found = place.read_exit()
    why = (found and found.why) or "it goes on"
    must = "stopped: it wrote more than 4 GB of output"
    return "output without end", why, must, why == must


PARTS = (*product((_kill_calls, _kill_background, _hold_chats), DATABASES),)
