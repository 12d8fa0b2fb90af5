"""Five processes open a store that nobody has opened before, at the same moment, twenty times."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.store.migrate import load_migrations
from clew.store.opening import open_store
from tests.contract.racing import Failed, race
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx

PROCESSES, ROUNDS = 5, 20


def run() -> Table:
    with server() as url:
        rows = tuple(
            (database, ROUNDS, sum(_round(database, url) for _ in range(ROUNDS)))
            for database in DATABASES
        )
    return Table(
        title=f"{PROCESSES} processes start at once",
        columns=("database", "rounds", "rounds in which all opened and the schema was made once"),
        rows=rows,
        passed=all(row[1] == row[2] for row in rows),
    )


def _round(database: str, server_url: str) -> bool:
    with fresh(database, server_url) as (url, home):
        try:
            opened = race(url, home, PROCESSES, None)
        except Failed as error:
            print(error)
            return False
        applied = asyncio.run(_applied(url, home))
    known = len(load_migrations("sqlite" if database == "sqlite" else "postgres"))
    return opened == ["opened"] * PROCESSES and applied == known


async def _applied(url: str, home: Path) -> int:
    async with await open_store(url, home=home) as store:
        return await store.read(_count)


def _count(t: Tx) -> int:
    row = t.fetch_one("SELECT count(*) FROM migration")
    assert row is not None
    return row[0]
