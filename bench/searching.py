"""Search over a million messages: common words, rare ones, Chinese, phrases; in every scope."""

from __future__ import annotations

import itertools
import random
import time
from typing import TYPE_CHECKING

import psycopg

from bench.corpus import (
    ENTRY,
    MESSAGES,
    SCOPES,
    Log,
    han,
    messages,
    scope_of,
    sqlite_file,
    vocabulary,
)
from bench.figures import Figure, percentile
from bench.places import BUILD, postgres_database, scratch
from clew.core.scope import LOCAL, Scope
from clew.store.maintenance import update_index
from clew.store.opening import open_store
from clew.store.postgres.search import encode_tokens
from clew.store.search import message_tokens, search_messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bench.corpus import Row
    from clew.store.contract import Store, Tx

#: Entries outside of the index that a busy gateway may have.
TAIL = 2_000

Query = tuple[str, Scope]


def queries() -> list[Query]:
    """Return the queries, half of them in one scope, of which half are small."""
    chooser = random.Random(5)
    words, signs = vocabulary(), han()
    texts = words[:20] + signs[:20]
    texts += [f"{a} {b}" for a, b in itertools.pairwise(words[:20])]
    texts += ["".join(pair) for pair in itertools.product(signs[:5], signs[3:8])]
    texts += [chooser.choice(signs) + chooser.choice(signs) for _ in range(20)]
    texts += [words[2**power] for power in range(15)]
    texts += [" ".join(chooser.choices(words[:1000], k=3)) for _ in range(20)]
    texts += [f"{words[0]} {chooser.choice(words)}" for _ in range(20)]
    texts += [f'"{a} {b}"' for a, b in itertools.pairwise(words[:15])]
    texts += [f"{words[3]}.", "。", "?!", "nowhere", " ".join(words[20:40])]
    small = SCOPES[len(SCOPES) // 2 :]
    places = [LOCAL, SCOPES[1], LOCAL, chooser.choice(small)]
    asked = [(text, place) for text in texts for place in places]
    chooser.shuffle(asked)
    return asked


async def measure() -> list[Figure]:
    path = await sqlite_file()
    async with await open_store(f"sqlite:///{path}", home=BUILD) as store:
        figures = await _figures(store, "SQLite", target=50)
        await store.write(_set_back, TAIL)
        times = await _ask(store)
        await store.write(_set_back, 0)
    name = f"the same with {TAIL:,} messages not in the index, p95"
    return [*figures, Figure(name=name, value=percentile(times.values(), 0.95), unit="ms")]


def _set_back(t: Tx, count: int) -> None:
    """Have the newest messages count as not indexed."""
    t.execute("UPDATE search_state SET indexed = $1", MESSAGES - count)


async def measure_postgres() -> list[Figure]:
    with postgres_database() as url, scratch() as folder:
        async with await open_store(url, home=folder) as store:
            fill_postgres(url)
            await update_index(store)
            finish_postgres(url)
            return await _figures(store, "PostgreSQL", target=None)


async def _figures(store: Store, database: str, *, target: float | None) -> list[Figure]:
    first = await _ask(store)
    times = await _ask(store)
    slowest = max(times, key=lambda query: times[query])
    print(f"\nslowest on {database}: {slowest}, {times[slowest]:.1f} ms", end="")
    name = f"search, {MESSAGES:,} messages, {database}"
    return [
        Figure(name=f"{name}, p50", value=percentile(times.values(), 0.5), unit="ms"),
        Figure(
            name=f"{name}, p95", value=percentile(times.values(), 0.95), unit="ms", target=target
        ),
        Figure(name=f"{name}, slowest", value=max(times.values()), unit="ms"),
        Figure(name=f"{name}, p95, first time", value=percentile(first.values(), 0.95), unit="ms"),
    ]


async def _ask(store: Store) -> dict[Query, float]:
    times: dict[Query, float] = {}
    for text, scope in queries():
        started = time.perf_counter()
        await store.read(search_messages, text, viewer=scope, limit=20)
        times[text, scope] = (time.perf_counter() - started) * 1000
    return times


def finish_postgres(url: str) -> None:
    """Make the index, and let the planner know what there is."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute(_GIN)
        connection.execute("VACUUM ANALYZE")


_GIN = b"CREATE INDEX search_tokens ON search_index USING gin (tokens) WITH (fastupdate = off)"


def fill_postgres(url: str) -> None:
    """Rows without triggers, and an index that is made at the end: much quicker."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DROP INDEX search_tokens")
        log = Log()
        _copy(connection, f"entry ({ENTRY})", log.entries(MESSAGES))
        for place, rows in log.others().items():
            _copy(connection, place, rows)
        _copy(connection, "search_index (n, tokens)", _index())


def _index() -> Iterator[Row]:
    """Yield the rows that ``catch_up`` would write into the index."""
    for n, conversation, text in messages(MESSAGES):
        yield n, encode_tokens(n, message_tokens(scope_of(conversation), text))


def _copy(connection: psycopg.Connection, place: str, rows: Iterable[Row]) -> None:
    with connection.cursor().copy(f"COPY {place} FROM STDIN".encode()) as copy:
        for row in rows:
            copy.write_row(row)
