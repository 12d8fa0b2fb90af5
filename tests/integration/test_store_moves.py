"""Moving a store to another database: the same rows on both sides, also after interruptions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import apsw
import psycopg
import pytest

from clew.core.ids import OwnerId
from clew.engine.exports import ConversationExporter
from clew.errors import StoreError, StoreInUse, StoreUnusable, UsageError
from clew.store.copying.migrate_store import MigrationResult, migrate_store
from clew.store.opening import open_store
from clew.store.sqlite.driver import fetch_rows
from clew.store.transactions import owners
from tests.contract import acting, invariants
from tests.integration import stores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytestmark = pytest.mark.postgres

SQLITE = "sqlite:///clew.db"
PROCESSES = ["client", "lease", "lock", "owner"]


class Stopped(Exception):
    """A person, or the power."""


def moved(
    source: str, target: str, home: Path, tell: Callable[[str, int, int], None] = stores.silent
) -> MigrationResult:
    return migrate_store(source, target, home=home, tell=tell)


def stop_after(calls: int) -> Callable[[str, int, int], None]:
    left = [calls]

    def tell(what: str, _done: int, _total: int) -> None:
        if what.startswith("copying"):
            left[0] -= 1
            if not left[0]:
                raise Stopped

    return tell


def test_a_store_moves_to_postgresql_and_back_with_every_row(
    postgres_url: str, tmp_path: Path
) -> None:
    stores.fill(SQLITE, tmp_path)
    there = moved(SQLITE, postgres_url, tmp_path)
    assert there.counts["entry"] == 22
    assert not there.resumed
    assert stores.differing(SQLITE, postgres_url, tmp_path) == PROCESSES
    assert stores.read(postgres_url, tmp_path, invariants.check) == []
    # Pending deliveries stay pending: the store continues as it was.
    states = "SELECT state FROM delivery ORDER BY n"
    assert stores.read(postgres_url, tmp_path, lambda t: t.fetch_all(states)) == stores.read(
        SQLITE, tmp_path, lambda t: t.fetch_all(states)
    )
    moved(postgres_url, "sqlite:///back.db", tmp_path)
    assert stores.differing(postgres_url, "sqlite:///back.db", tmp_path) == []
    begun = stores.write(postgres_url, tmp_path, acting.begin, OwnerId("own_next"))
    assert acting.the_turn(begun).id == "trn_2"


def test_an_export_is_the_same_to_the_byte_before_and_after_a_move(
    postgres_url: str, tmp_path: Path
) -> None:
    stores.fill(SQLITE, tmp_path)
    before = exported(SQLITE, tmp_path)
    assert before.count(b"\n") > 20
    moved(SQLITE, postgres_url, tmp_path)
    assert exported(postgres_url, tmp_path) == before == exported(SQLITE, tmp_path)


def exported(url: str, home: Path) -> bytes:
    async def run() -> bytes:
        async with await open_store(url, home=home) as store:
            return b"".join([line async for line in ConversationExporter(store).iter_lines(None)])

    return asyncio.run(run())


def test_a_move_that_was_stopped_continues_where_it_was(postgres_url: str, tmp_path: Path) -> None:
    stores.fill(SQLITE, tmp_path)
    with pytest.raises(Stopped):
        moved(SQLITE, postgres_url, tmp_path, stop_after(12))
    # Nobody takes what is half there for a store.
    with pytest.raises(UsageError, match="no store"):
        stores.read(postgres_url, tmp_path, invariants.check)
    rest, whole = list[str](), list[str]()
    found = moved(SQLITE, postgres_url, tmp_path, lambda what, _done, _total: rest.append(what))
    assert found.resumed
    moved(SQLITE, "sqlite:///whole.db", tmp_path, lambda what, _done, _total: whole.append(what))
    # A move that was stopped in the middle of a table begins with that table again.
    assert 8 <= whole.count("copying rows") - rest.count("copying rows") <= 11
    assert stores.differing(SQLITE, postgres_url, tmp_path) == PROCESSES


def test_a_source_that_was_used_between_two_tries_is_copied_again(
    postgres_url: str, tmp_path: Path
) -> None:
    stores.fill(SQLITE, tmp_path)
    with pytest.raises(Stopped):
        moved(SQLITE, postgres_url, tmp_path, stop_after(30))
    stores.write(SQLITE, tmp_path, lambda t: t.execute("UPDATE setting SET value = 'changed'"))
    stores.write(SQLITE, tmp_path, lambda t: t.execute("UPDATE blob SET media_type = 'changed'"))
    assert not moved(SQLITE, postgres_url, tmp_path).resumed
    assert stores.differing(SQLITE, postgres_url, tmp_path) == PROCESSES


def test_a_store_cannot_be_written_while_it_moves(postgres_url: str, tmp_path: Path) -> None:
    stores.fill(SQLITE, tmp_path)
    refused = set[str]()

    def try_to_write(what: str, _done: int, _total: int) -> None:
        try:
            fetch_rows(hasty, "BEGIN IMMEDIATE")
        except apsw.BusyError:
            refused.add(what.split(" ", maxsplit=1)[0])

    def try_to_write_there(what: str, _done: int, _total: int) -> None:
        with psycopg.connect(postgres_url) as connection:
            connection.execute("SET lock_timeout = 1")
            try:
                connection.execute("UPDATE setting SET value = 'changed'")
            except psycopg.errors.LockNotAvailable:
                refused.add(what.split(" ", maxsplit=1)[0])
            connection.rollback()

    hasty = apsw.Connection(str(tmp_path / "clew.db"))
    moved(SQLITE, postgres_url, tmp_path, try_to_write)
    hasty.close()
    assert refused == {"copying", "comparing", "checking"}
    refused.clear()
    moved(postgres_url, "sqlite:///back.db", tmp_path, try_to_write_there)
    assert refused == {"copying", "comparing", "checking"}


def test_a_target_that_does_not_take_what_it_is_given_is_no_store(
    postgres_url: str, tmp_path: Path
) -> None:
    stores.fill(SQLITE, tmp_path)

    def spoil(what: str, _done: int, _total: int) -> None:
        if what.startswith("comparing"):
            with psycopg.connect(postgres_url) as connection:
                connection.execute("UPDATE clew_incoming.setting SET value = 'changed'")

    with pytest.raises(StoreError, match=r"\(setting\)"):
        moved(SQLITE, postgres_url, tmp_path, spoil)
    assert not moved(SQLITE, postgres_url, tmp_path).resumed


def test_no_store_is_moved_under_a_running_owner(postgres_url: str, tmp_path: Path) -> None:
    stores.fill(SQLITE, tmp_path)

    async def run() -> None:
        async with await open_store(SQLITE, home=tmp_path) as store:
            me = OwnerId("own_running")
            await store.register_owner(me)
            await store.write(
                owners.register_owner, me, host="h", pid=77, role="serve", version="0"
            )
            with pytest.raises(StoreInUse, match="serve, pid 77"):
                await asyncio.to_thread(moved, SQLITE, postgres_url, tmp_path)

    asyncio.run(run())


def test_a_store_moves_only_to_where_none_is(postgres_url: str, tmp_path: Path) -> None:
    stores.fill(SQLITE, tmp_path)
    stores.write(postgres_url, tmp_path, acting.accept, acting.message("inb_theirs"))
    with pytest.raises(UsageError, match="not empty"):
        moved(SQLITE, postgres_url, tmp_path)
    stores.write(postgres_url, tmp_path, lambda t: t.execute("DROP TABLE migration"))
    with pytest.raises(StoreUnusable, match="another program"):
        moved(SQLITE, postgres_url, tmp_path)
    with pytest.raises(UsageError, match="there is no store"):
        moved("sqlite:///nowhere.db", postgres_url, tmp_path)
