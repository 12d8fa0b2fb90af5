"""Writers that are killed all the time keep each fact once, and no fact reaches another scope."""

from __future__ import annotations

import asyncio
import os
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from clew.core.scope import LOCAL
from clew.features.memory import session_notes
from clew.features.memory.searching import RECALL
from clew.store.transactions.sessions import get_head
from tests.features.memory_prefix import insert_facts, tell_long_story
from tests.features.memory_scopes import WAYS, ScopeMatrix, walk_scopes
from tests.features.memory_world import open_memory
from tests.features.memory_writers import Written, write_under_kills
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx

KILLS = int(os.environ.get("CLEW_SOAK_KILLS", "200"))
_WRITERS, _GATEWAYS, _FACTS = 8, 2, 1_000
#: Rounds.
_MOST = 50
#: Percent of the characters of a long session, ms of a recall and of a note, characters.
_MIN_SHARE, _MAX_RECALL, _MAX_NOTE, _MAX_CORE = 95, 30, 1, 5_100

#: Of the matrix of scopes.
_PLATFORMS, _PEOPLE = ("telegram", "discord", "slack"), 3


def run() -> tuple[Table, ...]:
    with server() as url:
        return _run_writers(url), _run_scopes(url), _run_prefix(url), _run_many(url)


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


def _run_prefix(url: str) -> Table:
    rows: list[tuple[object, ...]] = []
    passed = True
    for database in DATABASES:
        with fresh(database, url) as (store, home):
            one = asyncio.run(tell_long_story(home, store, turns=60, writes=50))
        shares = (f"{one.share:.1f} %", f"{one.reported:.1f} %")
        rows.append((database, one.requests, one.broken, *shares, one.untold))
        passed = passed and not one.broken and not one.untold
        passed = passed and min(one.share, one.reported) >= _MIN_SHARE
    return Table(
        title="A session of 60 turns, with 50 facts written in between",
        columns=(
            *("database", "requests", "not beginning as the one before", "cacheable"),
            *("reported as cached", "untold"),
        ),
        rows=tuple(rows),
        passed=passed,
    )


def _run_many(url: str) -> Table:
    rows: list[tuple[object, ...]] = []
    passed = True
    for database in DATABASES:
        with fresh(database, url) as (store, home):
            recall, note, core = asyncio.run(_measure(home, store))
        rows.append((database, f"{recall:.1f} ms", f"{note:.2f} ms", core))
        passed = passed and recall <= _MAX_RECALL and note <= _MAX_NOTE and core <= _MAX_CORE
    return Table(
        title="5,000 facts: time of the processor in the gateway, at most in 95 of 100 times",
        columns=("database", "recall", "note in begin", "characters of the core"),
        rows=tuple(rows),
        passed=passed,
    )


async def _measure(home: Path, url: str) -> tuple[float, float, int]:
    async with open_memory(home, url) as world:
        await world.store.write(insert_facts, 5_000)
        await world.say("hello")
        talk = await world.conversation()
        session = (await world.store.read(get_head, talk)).id
        given = {"conversation": talk, "session": session, "scope": LOCAL, "profile": None}
        context: Any = SimpleNamespace(**given)

        def recall(t: Tx, number: int) -> float:
            begin = time.thread_time()
            RECALL.find_facts(t, f"person {number} likes the number", LOCAL, limit=8)
            return time.thread_time() - begin

        def note(t: Tx) -> float:
            begin = time.thread_time()
            session_notes.make_note(t, context, recalls=False)
            return time.thread_time() - begin

        recalls = [await world.store.read(recall, number) for number in range(200)]
        notes = [await world.store.write(note) for _ in range(200)]
        core = await world.store.read(session_notes.render, LOCAL)
    return _find_high(recalls), _find_high(notes), len(core or "")


def _find_high(seconds: list[float]) -> float:
    """Return what 95 of 100 do not exceed, in ms."""
    return sorted(seconds)[len(seconds) * 95 // 100] * 1000


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
