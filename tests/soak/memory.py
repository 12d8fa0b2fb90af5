"""Eight writers in two gateways that are killed all the time: each fact is kept once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.features.memory_writers import Written, write_under_kills
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("CLEW_SOAK_KILLS", "200"))
_WRITERS, _GATEWAYS, _FACTS = 8, 2, 1_000
#: Rounds.
_MOST = 50


def run() -> Table:
    with server() as url:
        rows = [_run_database(database, url) for database in DATABASES]
    return Table(
        title=f"{_WRITERS} writers in {_GATEWAYS} gateways, {_FACTS:,} facts a round",
        columns=("database", "kills", "written", "kept once, numbered without a gap", "fsck"),
        rows=tuple(rows),
        passed=all(written == kept and not bad for _, _, written, kept, bad in rows),
    )


def _run_database(database: str, url: str) -> tuple[str, int, int, int, int]:
    kills = written = kept = findings = 0
    for seed in range(_MOST):
        with fresh(database, url) as (store, home):
            found = _write(store, home, KILLS - kills, seed)
        written += _FACTS
        kept += _count_kept(found)
        kills += found.kills
        findings += found.findings
        if kills >= KILLS:
            break
    return database, kills, written, kept, findings


def _write(store: str, home: Path, kills: int, seed: int) -> Written:
    return write_under_kills(
        home,
        store,
        gateways=_GATEWAYS,
        writers=_WRITERS,
        each=_FACTS // _WRITERS,
        kills=kills,
        seed=seed,
    )


def _count_kept(found: Written) -> int:
    return len(found.facts) if found.numbers == [*range(1, len(found.facts) + 1)] else 0
