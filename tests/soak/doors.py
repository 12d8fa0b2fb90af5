"""Clients of ACP, AG-UI and MCP that send messages with keys while their gateway is killed."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from itertools import product

from tests.killing.killed_doors import MESSAGES, talk_under_kills
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

SEEDS = int(os.environ.get("CLEW_SOAK_ROUNDS", "25"))
KILLS = int(os.environ.get("CLEW_SOAK_KILLS", "6"))


def run() -> Table:
    kills, wrong, clients = Counter[str](), Counter[str](), set[str]()
    repeated = Counter[tuple[str, str]]()
    with server() as url:
        for seed, database in product(range(SEEDS), DATABASES):
            with fresh(database, url) as (store, home):
                counts = asyncio.run(talk_under_kills(home, store, seed, KILLS))
            kills[database] += counts.kills
            clients |= counts.repeated.keys()
            for name, times in counts.repeated.items():
                repeated[database, name] += times
            for one in counts.wrong:
                print(f"{database}, seed {seed}: {one}", flush=True)
                wrong[database] += 1
            print(f"{database}, seed {seed}: {counts.kills} kills", flush=True)
    return Table(
        title="messages with keys on every door, the gateway killed at random moments",
        columns=("", *DATABASES),
        rows=(
            ("kills", *(kills[one] for one in DATABASES)),
            ("messages sent", *(SEEDS * MESSAGES * len(clients) for _ in DATABASES)),
            *(
                (f"attempts repeated, {name}", *(repeated[one, name] for one in DATABASES))
                for name in sorted(clients)
            ),
            ("lost, doubled, out of order, or a finding", *(wrong[one] for one in DATABASES)),
        ),
        passed=not wrong,
    )
