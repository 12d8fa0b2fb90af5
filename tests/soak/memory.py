"""Writers that are killed all the time keep each fact once, and no fact reaches another scope."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from tests.features.memory_scopes import WAYS, ScopeMatrix, walk_scopes
from tests.features.memory_writers import Written, write_under_kills
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("CLEW_SOAK_KILLS", "200"))
_WRITERS, _GATEWAYS, _FACTS = 8, 2, 1_000
#: Rounds.
_MOST = 50


#: Of the matrix of scopes.
_PLATFORMS, _PEOPLE = ("telegram", "discord", "slack"), 3


def run() -> tuple[Table, ...]:
    with server() as url:
        return _run_writers(url), _run_scopes(url)


def _run_scopes(url: str) -> Table:
    found = {database: _walk(database, url) for database in DATABASES}
    return Table(
        title=f"3 local fronts and {len(_PLATFORMS)} platforms with {_PEOPLE} people, groups and "
        "threads each: a fact of each scope, and whom it reached",
        columns=("database", "scopes", "routes", *WAYS, "told to others", "not told to its own"),
        rows=tuple(_make_row(database, one) for database, one in found.items()),
        passed=not any(one.leaks or one.lost for one in found.values()),
    )


def _walk(database: str, url: str) -> ScopeMatrix:
    with fresh(database, url) as (store, home):
        walk = walk_scopes(home, store, platforms=_PLATFORMS, people=_PEOPLE, everywhere=True)
        return asyncio.run(walk)


def _make_row(database: str, one: ScopeMatrix) -> tuple[object, ...]:
    searched = (one.searched[way] for way in WAYS)
    return (database, one.scopes, one.routes, *searched, len(one.leaks), len(one.lost))


def _run_writers(url: str) -> Table:
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
