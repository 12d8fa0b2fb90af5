"""Streamed responses whose gateways are killed between any two events."""

from __future__ import annotations

import os
from collections import Counter
from itertools import product

from tests.killing.killed_responses import EVENTS, hear_under_kills
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

SEEDS = int(os.environ.get("CLEW_SOAK_ROUNDS", "100"))


def run() -> Table:
    kills, events, wrong = Counter[str](), Counter[str](), Counter[str]()
    with server() as url:
        for seed, database in product(range(SEEDS), DATABASES):
            with fresh(database, url) as (store, home):
                heard = hear_under_kills(home, store, seed)
            kills[database] += heard.kills
            events[database] += len(heard.events)
            if heard.wrong:
                print(f"{database}, seed {seed}: {heard.wrong}", flush=True)
                wrong[database] += 1
    rows = [(one, SEEDS, kills[one], events[one], wrong[one]) for one in DATABASES]
    return Table(
        title=f"streams of {EVENTS} events, the gateway killed between two of them",
        columns=("database", "streams", "kills", "events", "with a gap, a repeat or a loss"),
        rows=tuple(rows),
        passed=not wrong,
    )
