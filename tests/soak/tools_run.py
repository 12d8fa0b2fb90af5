"""
``run_python`` in gateways that are killed: at each place around its call, and in its middle.

Each round has a store of its own. Whatever the place, the script runs once, the same call gets its
output, and nothing of it is left.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import product

from tests.features.killed_commands import PLACES, kill_in_a_command
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

ROUNDS = int(os.environ.get("CLEW_SOAK_ROUNDS", "10"))


def run() -> Table:
    kills, wrong = Counter[tuple[str, str]](), Counter[str]()
    with server() as url:
        for database, place in product(DATABASES, PLACES * ROUNDS):
            kills[place, database] += 1
            with fresh(database, url) as (store, home):
                found = kill_in_a_command(home, store, place)
            if not found.is_right:
                print(f"{database}: {place}: {found}", flush=True)
                wrong[database] += 1
    rows = [(place, *(kills[place, database] for database in DATABASES)) for place in PLACES]
    return Table(
        title=f"run_python killed at {len(PLACES)} places",
        columns=("killed at", *DATABASES),
        rows=(*rows, ("violations", *(wrong[database] for database in DATABASES))),
        passed=not wrong,
    )
