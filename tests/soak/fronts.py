"""Two browsers, a terminal and a chat on one conversation, whose gateway is killed."""

from __future__ import annotations

import os
from collections import Counter
from itertools import product

from tests.acceptance.fronts import kill_under_fronts
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

KILLS = int(os.environ.get("CLEW_SOAK_KILLS", "20"))
SEEDS = int(os.environ.get("CLEW_SOAK_ROUNDS", "1"))


def run() -> Table:
    kills, sent, wrong = Counter[str](), Counter[str](), Counter[str]()
    with server() as url:
        for database, seed in product(DATABASES, range(SEEDS)):
            with fresh(database, url) as (store, home):
                outcome = kill_under_fronts(home, store, seed, KILLS)
            kills[database] += outcome.kills
            sent[database] += outcome.sent
            wrong[database] += len(outcome.wrong)
            for one in outcome.wrong:
                print(f"{database}, seed {seed}: {one}", flush=True)
    return Table(
        title="two browsers, a terminal and Telegram on one conversation, the gateway killed",
        columns=("", *DATABASES),
        rows=(
            ("kills", *(kills[one] for one in DATABASES)),
            ("messages sent", *(sent[one] for one in DATABASES)),
            (
                "lost, doubled or out of order on a screen or in the store",
                *(wrong[one] for one in DATABASES),
            ),
        ),
        passed=not wrong.total(),
    )
