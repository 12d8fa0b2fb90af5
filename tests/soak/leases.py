"""Six processes claim 200 conversations at once, ten times: each goes to exactly one of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from clew.store.opening import open_store
from tests.contract import invariants, tasks
from tests.contract.racing import race
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from pathlib import Path

PROCESSES, CONVERSATIONS, ROUNDS = 6, 200, 10


def run() -> Table:
    rows: list[tuple[object, ...]] = []
    with server() as url:
        for database in DATABASES:
            results = [_round(database, url) for _ in range(ROUNDS)]
            once = sum(count == 1 for result, _ in results for count in result.values())
            broken = sum(len(violations) for _, violations in results)
            spread = max(len(result) for result, _ in results)
            rows.append((database, ROUNDS * CONVERSATIONS, once, ROUNDS * spread - once, broken))
    wanted = ROUNDS * CONVERSATIONS
    return Table(
        title=f"{PROCESSES} processes claim {CONVERSATIONS} conversations, {ROUNDS} times",
        columns=("database", "claims", "granted to exactly one", "to several", "violations"),
        rows=tuple(rows),
        passed=all(row[2:] == (wanted, 0, 0) for row in rows),
    )


def _round(database: str, server_url: str) -> tuple[Counter[int], list[str]]:
    with fresh(database, server_url) as (url, home):
        asyncio.run(_prepare(url, home))
        winners = race(url, home, PROCESSES, tasks.claim, CONVERSATIONS)
        violations = asyncio.run(_violations(url, home))
    return Counter(number for won in winners for number in won), violations


async def _prepare(url: str, home: Path) -> None:
    async with await open_store(url, home=home) as store:
        await store.write(tasks.prepare, CONVERSATIONS)


async def _violations(url: str, home: Path) -> list[str]:
    async with await open_store(url, home=home) as store:
        return await store.read(invariants.check)
