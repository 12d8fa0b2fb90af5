"""Writers of facts in processes that are killed: each logs what is committed and goes on."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.scope import Scope
from clew.features import memory
from clew.features.memory import facts, writing
from clew.features.memory.facts import FactWriter
from clew.plugin.registry import Features
from clew.store.opening import open_store
from tests.features.memory_world import find_wrong
from tests.killing import processes
from tests.waiting import block_until

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    from clew.features.memory.facts import Fact
    from clew.store.contract import Store

SCOPE = Scope("person:telegram:1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Writers:
    """The writers of one process."""

    home: Path
    store_url: str
    numbers: tuple[int, ...]
    #: Facts of each writer.
    facts: int

    def log_of(self, number: int) -> Path:
        """Where a writer says how many of its facts are committed."""
        return self.home / f"writer{number}"


async def open_memory_store(home: Path, url: str) -> Store:
    features = Features()
    features.register("memory", memory.register)
    return await open_store(url, home=home, features=features.schemas)


def run_writers(job: Writers) -> None:
    """Write what is not committed yet, until the end or a kill."""
    asyncio.run(_write_all(job))


async def _write_all(job: Writers) -> None:
    async with await open_memory_store(job.home, job.store_url) as store:
        await asyncio.gather(*(_write(job, number, store) for number in job.numbers))


async def _write(job: Writers, number: int, store: Store) -> None:
    log = job.log_of(number)
    done = len(log.read_bytes()) if log.exists() else 0
    with log.open("ab", buffering=0) as said:
        for at in range(done, job.facts):
            await store.write(writing.remember, _make_fact(number, at))
            said.write(b".")


def _make_fact(number: int, at: int) -> writing.NewFact:
    return writing.NewFact(
        id=f"mem_{number}_{at}",
        scope=SCOPE,
        text=f"writer {number} knows fact {at}",
        written_by=FactWriter.AGENT,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What the store has at the end."""

    facts: list[Fact]
    kills: int
    #: Of fsck.
    findings: int

    @property
    def numbers(self) -> list[int]:
        return [one.number for one in self.facts]


def write_under_kills(
    home: Path, url: str, *, gateways: int, writers: int, each: int, kills: int, seed: int
) -> Written:
    """Have processes write at once, and kill them at any moment, each time another."""
    dice = random.Random(seed)
    asyncio.run(_prepare(home, url))
    jobs = [
        Writers(
            home=home,
            store_url=url,
            numbers=tuple(range(first, writers, gateways)),
            facts=each,
        )
        for first in range(gateways)
    ]
    running = [processes.fork(run_writers, job) for job in jobs]
    done = 0
    while done < kills and not all(map(_has_ended, running)):
        time.sleep(dice.uniform(0.02, 0.3))
        at = dice.randrange(gateways)
        if _has_ended(running[at]):
            continue
        running[at].kill()
        running[at].join()
        running[at] = processes.fork(run_writers, jobs[at])
        done += 1
    block_until(lambda: all(map(_has_ended, running)))
    return asyncio.run(_read(home, url, done))


def _has_ended(process: BaseProcess) -> bool:
    return process.exitcode is not None


async def _prepare(home: Path, url: str) -> None:
    async with await open_memory_store(home, url):
        pass


async def _read(home: Path, url: str, kills: int) -> Written:
    async with await open_memory_store(home, url) as store:
        found = await store.read(facts.list_active, SCOPE)
        return Written(facts=found, kills=kills, findings=len(await store.read(find_wrong)))
