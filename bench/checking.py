"""Checking a store with a million entries, and how long a repair keeps others waiting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, LiteralString

from bench.corpus import MESSAGES, sqlite_file
from bench.figures import Figure
from bench.places import BUILD, postgres_database, scratch
from bench.searching import fill_postgres, finish_postgres
from clew.engine.fsck import StoreChecker
from clew.store.checks.check import repair_if_confirmed
from clew.store.checks.registry import CHECKS_BY_NAME
from clew.store.maintenance import update_index
from clew.store.opening import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Store, Tx

#: Faults of many conversations, each of which a repair takes back.
_FAULTS: dict[LiteralString, LiteralString] = {
    "last-seq": "UPDATE lease SET last_seq = last_seq - 1 WHERE conversation_id LIKE 'cnv_11%'",
    "head-row": "DELETE FROM head WHERE conversation_id LIKE 'cnv_12%'",
    "lease-row": "DELETE FROM lease WHERE conversation_id LIKE 'cnv_13%'",
    "turn-inputs": "UPDATE inbox SET outcome = 'merged' WHERE turn_id LIKE 'trn~_1~_1%' ESCAPE '~'",
    "call-step": "UPDATE turn SET steps = 0 WHERE id LIKE 'trn~_1~_2%' ESCAPE '~' AND steps >= 1",
}


async def measure() -> list[Figure]:
    path = await sqlite_file()
    url = f"sqlite:///{path}"
    async with await open_store(url, home=BUILD) as store:
        return await _figures(store, url, BUILD, "SQLite", target=10)


async def measure_postgres() -> list[Figure]:
    with postgres_database() as url, scratch() as folder:
        async with await open_store(url, home=folder) as store:
            fill_postgres(url)
            await update_index(store)
            finish_postgres(url)
            return await _figures(store, url, folder, "PostgreSQL", target=None)


async def _figures(
    store: Store, url: str, home: Path, database: str, *, target: float | None
) -> list[Figure]:
    await _check(store, url, home)
    seconds = await _check(store, url, home)
    alone = await _check(store, url, home, processes=1)
    repairs = await _repairs(store)
    assert await _check(store, url, home)
    name = f"fsck, {MESSAGES:,} entries, {database}"
    return [
        Figure(name=name, value=seconds, unit="s", target=target),
        Figure(name=f"{name}, in one process", value=alone, unit="s"),
        Figure(name=f"{name}, the longest repair", value=max(repairs), unit="ms", target=100),
    ]


async def _check(store: Store, url: str, home: Path, *, processes: int | None = None) -> float:
    fsck = StoreChecker(store, url=url, home=home, say=lambda _: None, processes=processes)
    started = time.monotonic()
    report = await fsck.find_problems()
    assert report.is_clean, report.findings[:3]
    return time.monotonic() - started


async def _repairs(store: Store) -> list[float]:
    """Milliseconds of each transaction that repairs something."""
    times: list[float] = []

    def mend(t: Tx, name: LiteralString) -> int:
        return t.execute(_FAULTS[name])

    for name in _FAULTS:
        await store.write(mend, name)
    for name in _FAULTS:
        for found in await store.read(CHECKS_BY_NAME[name].find):
            started = time.perf_counter()
            assert await store.write(repair_if_confirmed, CHECKS_BY_NAME[name], found)
            times.append((time.perf_counter() - started) * 1000)
    return times
