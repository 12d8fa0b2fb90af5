"""
Contexts after every cut and compaction of drawn histories: a strict checker accepts them.

``CLEW_SOAK_HISTORIES`` histories on each database (default 12), each cut after each of its entries
by each kind of cut, compacted at each message in each way, and sent in each of three formats.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections import Counter
from typing import TYPE_CHECKING

import structlog
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.context.cutting import WAYS, open_bench, runs
from tests.context.histories import histories
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from pathlib import Path

    from tests.context.cutting import Run
    from tests.context.histories import History

HISTORIES = int(os.environ.get("CLEW_SOAK_HISTORIES", "12"))
#: Of the runs of one history; a history of 20 entries has 10,000.
MOST = int(os.environ.get("CLEW_SOAK_RUNS", "400"))


def run() -> Table:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    rows: list[tuple[object, ...]] = []
    with server() as server_url:
        for database in DATABASES:
            with fresh(database, server_url) as (url, home):
                rows += asyncio.run(_on(database, url, home))
    return Table(
        title=f"{HISTORIES} histories, cut and compacted",
        columns=("database", "compacted", "runs", "were compacted", "wrong"),
        rows=tuple(rows),
        passed=not any(row[-1] for row in rows),
    )


async def _on(database: str, url: str, home: Path) -> list[tuple[object, ...]]:
    made, wrong = Counter[str](), Counter[str]()
    async with open_bench(url, home) as bench:
        for history in _drawn():
            source, last_seq = await bench.write(history)
            every = _chosen(last_seq)
            made.update(each.way for each in every)
            found = [(each, await bench.complaints(history, source, each)) for each in every]
            bad = [(each, complaints) for each, complaints in found if complaints]
            wrong.update(each.way for each, _ in bad)
            print(
                "".join(f"{database}: {each}: {told}\n  {history}\n" for each, told in bad), end=""
            )
    return [(database, way, made[way], bench.compacted[way], wrong[way]) for way in WAYS]


def _drawn() -> list[History]:
    drawn: list[History] = []

    @seed(1)
    @settings(
        max_examples=HISTORIES,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(history=histories)
    def draw(history: History) -> None:
        drawn.append(history)

    draw()
    return drawn


def _chosen(last_seq: int) -> list[Run]:
    every = list(runs(last_seq))
    return random.Random(last_seq).sample(every, min(MOST, len(every)))
