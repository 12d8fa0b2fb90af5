"""
Tasks of other agents in gateways that are killed: at each point of a delegation, in each way.

Whatever the point, there is one child with one answer in the conversation that asked, and what the
task sends is sent once at most. A round whose point was not reached counts as no kill.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from tests.features.killed_tasks import POINTS, Delegated, Gateways, kill_in_a_delegation
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Kills on each database.
KILLS = int(os.environ.get("CLEW_SOAK_KILLS", "500"))
#: Where the seeds begin.
_FIRST = int(os.environ.get("CLEW_SOAK_SEED", "0"))
_GATEWAYS: tuple[Gateways, ...] = ("one", "two")


@dataclass(kw_only=True)
class Tally:
    """The rounds so far."""

    kills: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    rounds: Counter[str] = field(default_factory=Counter[str])
    wrong: Counter[str] = field(default_factory=Counter[str])

    def add(self, database: str, seed: int, found: Delegated) -> None:
        point = seed % len(POINTS)
        self.rounds[database] += 1
        self.kills[database, point] += found.kills
        if not found.is_right:
            print(f"{database}: seed {seed}: {POINTS[point][0]}: {found}", flush=True)
            self.wrong[database] += 1

    def killed(self, database: str) -> int:
        return sum(number for (one, _), number in self.kills.items() if one == database)


def run() -> Table:
    tally = Tally()
    with server() as url:
        for database, seed in _plan(tally):
            with fresh(database, url) as (store, home):
                tally.add(database, seed, run_round(home, store, seed))
    return make_table(tally)


def _plan(tally: Tally) -> Iterator[tuple[str, int]]:
    """Take the databases in turns until each has its kills."""
    for seed in count(_FIRST):
        left = [database for database in DATABASES if tally.killed(database) < KILLS]
        if not left:
            return
        for database in left:
            yield database, seed


def run_round(home: Path, store_url: str, seed: int) -> Delegated:
    """Kill at the point and in the way of a seed."""
    point, way = seed % len(POINTS), seed // len(POINTS) % 4
    return kill_in_a_delegation(
        home, store_url, point, seed, background=bool(way % 2), gateways=_GATEWAYS[way // 2]
    )


def make_table(tally: Tally) -> Table:
    rows = [
        (name, *(tally.kills[database, point] for database in DATABASES))
        for point, (name, _, _) in enumerate(POINTS)
    ]
    return Table(
        title=f"A delegation killed at {len(POINTS)} points",
        columns=("killed at", *DATABASES),
        rows=(
            *rows,
            ("kills", *(tally.killed(database) for database in DATABASES)),
            ("rounds", *(tally.rounds[database] for database in DATABASES)),
            ("without exactly one child and answer", *(tally.wrong[one] for one in DATABASES)),
        ),
        passed=not tally.wrong,
    )
