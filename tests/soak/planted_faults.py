"""Plant every fault in a store of its own, and all in one: each is found, and repaired or left."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from tests.planting.faults import EVERY, REPAIRABLE, UNDECIDED
from tests.planting.planted import expected, found, opened, plant, tell
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.planting.faults import Fault

_DONE = ("found exactly", "repaired, then clean", "left to a person", "wrong")


def run() -> Table:
    rows: list[tuple[object, ...]] = []
    with server() as url:
        for database in DATABASES:
            for name, stores in (
                ("a store each", [[fault] for fault in EVERY]),
                ("all in one store", [REPAIRABLE, UNDECIDED]),
            ):
                counts = _all(database, url, stores)
                rows.append((database, name, len(EVERY), *(counts[what] for what in _DONE)))
                print(rows[-1], flush=True)
    return Table(
        title=f"{len(EVERY)} planted faults",
        columns=("database", "planted in", "faults", *_DONE),
        rows=tuple(rows),
        passed=all(row[2] == row[3] and row[-1] == 0 for row in rows),
    )


def _all(database: str, server_url: str, stores: Sequence[Sequence[Fault]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for faults in stores:
        with fresh(database, server_url) as (url, home):
            counts += asyncio.run(_one(url, home, faults))
    return counts


async def _one(url: str, home: Path, faults: Sequence[Fault]) -> Counter[str]:
    sure = faults[0] in REPAIRABLE
    await tell(url, home, faults)
    plant(url, home, faults)
    async with opened(url, home) as fsck:
        seen = await fsck.find_problems()
        after = await fsck.repair_problems()
        again = await fsck.find_problems()
    counts: Counter[str] = Counter()
    if found(seen, faults) == expected(faults):
        counts["found exactly"] += len(faults)
    if sure and after.is_clean and again.findings == ():
        counts["repaired, then clean"] += len(faults)
    elif not sure and found(again, faults) == expected(faults):
        counts["left to a person"] += len(faults)
    else:
        counts["wrong"] += len(faults)
        print(faults, again.findings, flush=True)
    return counts
