"""
``run_python`` in gateways that are killed: at each place around its call, and in its middle.

Each round has a store of its own; whatever the place, the script is run once or the model is told
that its outcome is unknown, and nothing of it outlives its gateway.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import product

from tests.features.killed_commands import PLACES, RUNNING, UNKNOWN, Outcome, kill_in_a_command
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

ROUNDS = int(os.environ.get("CLEW_SOAK_ROUNDS", "10"))


def run() -> Table:
    places = [*PLACES, RUNNING]
    kills, wrong = Counter[tuple[str, str]](), Counter[str]()
    with server() as url:
        for database, place in product(DATABASES, places * ROUNDS):
            kills[place, database] += 1
            with fresh(database, url) as (store, home):
                found = kill_in_a_command(home, store, place)
            if not _is_expected(place, found):
                print(f"{database}: {place}: {found}", flush=True)
                wrong[database] += 1
    rows = [(place, *(kills[place, database] for database in DATABASES)) for place in places]
    return Table(
        title=f"run_python killed at {len(places)} places",
        columns=("killed at", *DATABASES),
        rows=(*rows, ("violations", *(wrong[database] for database in DATABASES))),
        passed=not wrong,
    )


def _is_expected(place: str, found: Outcome) -> bool:
    begun, told = PLACES.get(place, (1, UNKNOWN))
    ended = 0 if place == RUNNING else begun
    counts = (found.begun, found.ended, found.left) == (begun, ended, False)
    return counts and found.told.startswith(told)
