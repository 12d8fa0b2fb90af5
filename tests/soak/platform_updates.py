"""
Random updates of every platform, built from its published schemas, through a running gateway.

Each must become a message that was answered, a line that names it, or an entry of the log.
"""

from __future__ import annotations

import asyncio
import os
import time

from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server
from tests.updates.campaign import PLATFORMS, Found, campaign

UPDATES = int(os.environ.get("CLEW_SOAK_UPDATES", "1000"))
SEED = int(os.environ.get("CLEW_SOAK_SEED", "1"))


def _one(platform: str, database: str, server_url: str) -> tuple[object, ...]:
    began = time.monotonic()
    with fresh(database, server_url) as (url, home):
        found: Found = asyncio.run(campaign(platform, url, home, updates=UPDATES, seed=SEED))
    for sentence in found.wrong[:20]:
        print(f"{platform}, {database}: {sentence}", flush=True)
    took = f"{time.monotonic() - began:.0f} s"
    row = (
        platform, database, found.updates, len(found.kinds), found.turns, found.logged,
        found.updates - found.turns - found.logged, len(found.wrong), took,
    )  # fmt: skip
    print(row, flush=True)
    return row


def run() -> Table:
    with server() as url:
        rows = [_one(platform, database, url) for platform in PLATFORMS for database in DATABASES]
    return Table(
        title=f"{UPDATES} random updates on each platform",
        columns=(
            "platform", "database", "updates", "kinds of content", "answered", "logged only",
            "lost", "violations", "took",
        ),
        rows=tuple(rows),
        passed=bool(rows) and all(row[6] == row[7] == 0 for row in rows),
    )  # fmt: skip
