"""
``write_file`` and ``edit_file`` in gateways that are killed: at each place around each call.

Each round has a store of its own. Whatever the place, each change is made once, or again to the
same effect; the file is never found half changed, and the model is told what a run without a kill
would have told it.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import product

from tests.features.killed_files import PLACES, is_expected, kill_in_a_change
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

ROUNDS = int(os.environ.get("CLEW_SOAK_ROUNDS", "5"))
_CALLS = {1: "write_file", 2: "edit_file"}


def run() -> Table:
    points = list(product(_CALLS, PLACES))
    kills, wrong = Counter[tuple[int, str, str]](), Counter[str]()
    with server() as url:
        for database, (nth, place) in product(DATABASES, points * ROUNDS):
            kills[nth, place, database] += 1
            with fresh(database, url) as (store, home):
                found = kill_in_a_change(home, store, place, nth)
            if not is_expected(found):
                short = (len(found.killed or ""), len(found.ended or ""), found.told, found.changes)
                print(f"{database}: {_CALLS[nth]}: {place}: {short}", flush=True)
                wrong[database] += 1
    rows = [
        (_CALLS[nth], place, *(kills[nth, place, database] for database in DATABASES))
        for nth, place in points
    ]
    return Table(
        title=f"write_file and edit_file killed at {len(points)} places",
        columns=("call", "killed at", *DATABASES),
        rows=(*rows, ("violations", "", *(wrong[database] for database in DATABASES))),
        passed=not wrong,
    )
