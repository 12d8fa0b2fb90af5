"""Gateways that pursue a goal and are killed, at each place around and in its rounds."""

from __future__ import annotations

import os
import random
from collections import Counter

from tests.features.killed_goals import PLACES, is_right, pursue_under_kills
from tests.killing.killer import Place
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

KILLS = int(os.environ.get("CLEW_SOAK_ROUNDS", "100"))
_PER_GOAL = 2
_SEED = 32


def run() -> Table:
    seeded = random.Random(_SEED)
    kills, goals, wrong = Counter[str](), Counter[str](), Counter[str]()
    with server() as url:
        while sum(kills.values()) < KILLS:
            database = DATABASES[sum(goals.values()) % len(DATABASES)]
            places = [
                Place(name=seeded.choice(PLACES), nth=seeded.choice((1, 1, 2)))
                for _ in range(_PER_GOAL)
            ]
            with fresh(database, url) as (store, home):
                found = pursue_under_kills(home, store, places)
            goals[database] += 1
            kills[database] += found.kills
            if not is_right(found):
                print(f"{database}: {places}: {found}", flush=True)
                wrong[database] += 1
    rows = [(one, goals[one], kills[one], wrong[one]) for one in DATABASES]
    return Table(
        title=f"goals of three rounds with a judge, gateways killed at {len(PLACES)} places",
        columns=("database", "goals", "kills", "lost or doubled"),
        rows=tuple(rows),
        passed=not wrong,
    )
