"""Three gateways fire jobs of each minute while they are killed: each slot is accepted once."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from clew.features.schedule.jobs import list_due_jobs
from clew.store.checks.registry import find_all
from tests.killing import job_gateway, processes
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server
from tests.waiting import wait_until

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    from clew.store.contract import Store, Tx

GATEWAYS, JOBS, MINUTES, KILLS = 3, 20, 500, 200
#: Seconds for all gateways together to fire what is due.
_PATIENCE = 120


@dataclass(frozen=True, kw_only=True)
class Fired:
    """What is in the store after a run."""

    slots: int
    #: Fires that have an input or a delivery of their own, and what was accepted in all.
    started: int
    accepted: int
    lost: int
    findings: int


def run() -> Table:
    rows: list[tuple[object, ...]] = []
    passed = True
    with server() as server_url:
        for database in DATABASES:
            with fresh(database, server_url) as (url, home):
                found = fire_under_kills(url, home, jobs=JOBS, minutes=MINUTES, kills=KILLS)
            passed &= is_right(found, jobs=JOBS, minutes=MINUTES)
            rows.append(
                (database, found.slots, found.started, found.accepted, found.lost, found.findings)
            )
    return Table(
        title=f"{GATEWAYS} gateways, {JOBS * MINUTES:,} slots, {KILLS} kills",
        columns=("database", "slots", "started", "accepted", "lost", "findings of fsck"),
        rows=tuple(rows),
        passed=passed,
    )


def is_right(found: Fired, *, jobs: int, minutes: int) -> bool:
    """Return whether each slot has one row, and each that started is accepted once."""
    return (
        found.slots == jobs * minutes
        and found.started == found.accepted
        and (found.lost, found.findings) == (0, 0)
    )


def fire_under_kills(
    url: str, home: Path, *, jobs: int, minutes: int, kills: int, gateways: int = GATEWAYS
) -> Fired:
    """Let gateways fire jobs of each minute, while one after the other is killed."""
    clock = home / "clock"
    job_gateway.set_clock(clock, 0)
    asyncio.run(job_gateway.prepare(url, home, clock, jobs))
    when = set(random.Random(17).sample(range(1, minutes + 1), kills))
    running = [_start(url, home, clock) for _ in range(gateways)]
    try:
        return asyncio.run(_pass_minutes(url, home, running, minutes=minutes, when=when))
    finally:
        for one in running:
            _kill(one)


async def _pass_minutes(
    url: str,
    home: Path,
    running: list[BaseProcess],
    *,
    minutes: int,
    when: set[int],
) -> Fired:
    """Move the clock on, minute by minute, and kill one gateway after the other."""
    clock = home / "clock"
    async with await job_gateway.open_with_jobs(url, home, clock) as store:
        for minute in range(1, minutes + 1):
            job_gateway.set_clock(clock, minute)
            if minute in when:
                _kill(running.pop(0))
                running.append(_start(url, home, clock))
            await wait_until(partial(_is_idle, store), seconds=_PATIENCE)
            # Somebody else answers: the next slot of a turn starts as well.
            await store.write(_end_runs)
        findings = await store.read(find_all)
        return await store.read(_count, len(findings))


def _start(url: str, home: Path, clock: Path) -> BaseProcess:
    return processes.fork(job_gateway.main, url, home, clock)


def _kill(gateway: BaseProcess) -> None:
    gateway.kill()
    processes.ended(gateway)


async def _is_idle(store: Store) -> bool:
    return not await store.read(list_due_jobs, limit=1)


def _end_runs(t: Tx) -> None:
    t.execute(
        "UPDATE schedule_fire SET state = 'done', ended_at = $1 WHERE state = 'started'", t.now
    )


def _count(t: Tx, findings: int) -> Fired:
    return Fired(
        slots=t.fetch_value("SELECT count(*) FROM schedule_fire"),
        started=t.fetch_value(
            "SELECT count(*) FROM schedule_fire WHERE state NOT IN ('skipped', 'missed')"
        ),
        accepted=t.fetch_value(
            "SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM delivery)"
        ),
        lost=t.fetch_value(
            """
            SELECT count(*) FROM schedule_fire f WHERE f.state IN ('started', 'done')
            AND NOT EXISTS (
                SELECT 1 FROM inbox i WHERE i.id = f.input
                UNION ALL SELECT 1 FROM delivery d WHERE d.created_at = f.at AND f.input IS NULL
            )
            """
        ),
        findings=findings,
    )
