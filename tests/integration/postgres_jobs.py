"""Jobs of the PostgreSQL tests: like Clew's own they take ids made by their caller."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from clew.store.contract import Store, Tx


def make_tables(t: Tx) -> None:
    t.execute("CREATE TABLE note (id TEXT PRIMARY KEY, n BIGINT NOT NULL DEFAULT 0)")


def add(t: Tx, name: str) -> int:
    """Insert once; how many notes there are."""
    t.execute("INSERT INTO note (id) VALUES ($1) ON CONFLICT DO NOTHING", name)
    return count(t)


def count(t: Tx) -> int:
    row = t.fetch_one("SELECT count(*) FROM note")
    assert row is not None
    return row[0]


def names(t: Tx) -> list[str]:
    return [row[0] for row in t.fetch_all("SELECT id FROM note ORDER BY id")]


def lock(t: Tx, name: str) -> None:
    """One statement."""
    t.fetch_one("SELECT n FROM note WHERE id = $1 @LOCK", name)


def increase(t: Tx, name: str) -> None:
    """Read, then write: exact only if the row is locked in between."""
    row = t.fetch_one("SELECT n FROM note WHERE id = $1 @LOCK", name)
    assert row is not None
    t.execute("UPDATE note SET n = $2 WHERE id = $1", name, row[0] + 1)


def value(t: Tx, name: str) -> int:
    row = t.fetch_one("SELECT n FROM note WHERE id = $1", name)
    assert row is not None
    return row[0]


def break_connection(t: Tx) -> None:
    """Have the server end our own connection, as an administrator or a crash does."""
    t.fetch_all("SELECT pg_terminate_backend(pg_backend_pid())")


def pid(t: Tx) -> int:
    row = t.fetch_one("SELECT pg_backend_pid()")
    assert row is not None
    return row[0]


def terminate(t: Tx, name: str) -> int:
    """End the connections whose last statement contains ``name``; how many are gone."""
    return len(
        t.fetch_all(
            """
            SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE $1
            """,
            f"%{name}%",
        )
    )


async def until(store: Store, job: Callable[[Tx], bool]) -> None:
    """Wait until a job on the store says so."""
    await wait_until(lambda: store.read(job), job.__qualname__, pause=0.02)


async def settle(changes: AsyncIterator[frozenset[str] | None], other: Store) -> None:
    """Step until a listener hears the very last of what ``other`` said: its connection listens."""
    for attempt in itertools.count():
        await other.write(wake, f"settle {attempt}")
        while (heard := await anext(changes)) is not None:
            if f"settle {attempt}" in heard:
                return


def wake(t: Tx, *topics: str) -> None:
    for topic in topics:
        t.notify(topic)


def connections(t: Tx) -> int:
    """Return the number of connections of this database."""
    row = t.fetch_one("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    assert row is not None
    return row[0]
