"""A gateway with 1,000 jobs of which none is due, beside one without any: CPU and writes."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.figures import Figure
from bench.places import scratch
from bench.turns import provider, serve
from clew.core.route import Route
from clew.core.scope import scope_of
from clew.features.schedule.making import JobOwner, JobRequest, create_job
from clew.plugin.loading import load_features
from clew.store.opening import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from bench.turns import Server

#: Jobs of as many chats, and the seconds in which both gateways are watched.
JOBS, CHATS, SECONDS = 1_000, 20, 60
#: Until whatever a start does is done.
_SETTLING: Final = 10
#: Percent of a core, for all jobs together.
SHARE: Final = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What a gateway has used since it began."""

    cpu: float
    #: Transactions that have written to its database.
    writes: int

    def since(self, earlier: Spent) -> Spent:
        return Spent(cpu=self.cpu - earlier.cpu, writes=self.writes - earlier.writes)


async def measure() -> list[Figure]:
    with ExitStack() as stack:
        folders = {jobs: stack.enter_context(scratch()) for jobs in (0, JOBS)}
        for jobs, folder in folders.items():
            (folder / "home").mkdir()
            await _fill(folder / "home", jobs)
        return await asyncio.to_thread(_measure, folders)


async def _fill(home: Path, jobs: int) -> None:
    """Make a store with jobs that fire in many months."""
    features = load_features(folder=home)
    url = "sqlite:///clew.db"
    async with await open_store(url, home=home, features=features.schemas) as store:
        for n in range(jobs):
            route = Route(platform="telegram", kind="dm", chat=str(n % CHATS))
            owner = JobOwner(scope=scope_of(route), route=route.key)
            wanted = JobRequest(task=f"look after plant {n}", every="300d", zone="UTC")
            await store.write(create_job, f"job_{n}", wanted, owner)


def _measure(folders: dict[int, Path]) -> list[Figure]:
    with ExitStack() as stack:
        asked = stack.enter_context(provider())
        running = {
            jobs: (stack.enter_context(serve(folder, asked, None)), folder / "home")
            for jobs, folder in folders.items()
        }
        time.sleep(_SETTLING)
        before = {jobs: _read(*each) for jobs, each in running.items()}
        time.sleep(SECONDS)
        spent = {jobs: _read(*each).since(before[jobs]) for jobs, each in running.items()}
    share = {jobs: one.cpu / SECONDS * 100 for jobs, one in spent.items()}
    idle = "of a gateway without jobs"
    return [
        Figure(name="CPU of an idle gateway without jobs", value=share[0], unit="%"),
        Figure(
            name=f"CPU of an idle gateway with {JOBS:,} jobs",
            value=share[JOBS],
            unit="%",
            ratio=share[JOBS] / share[0],
            baseline=idle,
        ),
        Figure(
            name=f"CPU of {JOBS:,} idle jobs", value=share[JOBS] - share[0], unit="%", target=SHARE
        ),
        Figure(name=f"writes in {SECONDS} s without jobs", value=spent[0].writes, unit="commits"),
        Figure(
            name=f"writes in {SECONDS} s for {JOBS:,} idle jobs",
            value=spent[JOBS].writes - spent[0].writes,
            unit="commits",
            target=0,
        ),
    ]


def _read(server: Server, home: Path) -> Spent:
    """Return what a gateway has used, from the counters of the kernel and of the database."""
    # The clock of all threads of a process, as ``clock_getcpuclockid`` names it on Linux.
    cpu = time.clock_gettime(~server.process.pid << 3 | 2)
    # The header of the index of the write-ahead log counts the transactions that wrote.
    header = (home / "clew.db-shm").read_bytes()[:12]
    return Spent(cpu=cpu, writes=int.from_bytes(header[8:12], "little"))
