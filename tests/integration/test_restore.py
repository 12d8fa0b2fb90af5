"""Restoring: verified before anything is touched, at once in place, nothing lost that was there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from clew.core.delivery import DeliveryState
from clew.core.ids import DeliveryId, OwnerId
from clew.errors import StoreDamaged, StoreInUse, StoreUnusable, UsageError
from clew.store import migrate
from clew.store.backup import files
from clew.store.backup.create import create_backup
from clew.store.backup.restore import RestoreResult, restore_backup
from clew.store.copying.migrate_store import migrate_store
from clew.store.copying.tables import count_table_rows
from clew.store.file_header import STORE, UNFINISHED, read_stamp
from clew.store.opening import open_store
from clew.store.sqlite.driver import fetch_rows
from clew.store.transactions import deliveries, due_work, owners
from tests.acceptance.program import until
from tests.contract import acting, invariants
from tests.integration import stores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clew.store.contract import Tx
    from tests.databases import Databases

SQLITE = "sqlite:///clew.db"
OTHER = "sqlite:///other.db"


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A backup of a store with something in every table, at ``OTHER``."""
    stores.fill(OTHER, tmp_path)
    return create_backup(OTHER, home=tmp_path, file=tmp_path / "backup", tell=stores.silent).file


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a target for a restore: a store that does not exist yet or is empty."""
    if request.param == "sqlite":
        yield SQLITE
        return
    databases: Databases = request.getfixturevalue("postgres_databases")
    with databases.migrated() as url:
        yield url


def restored(url: str, home: Path, file: Path, *, replace: bool = False) -> RestoreResult:
    return restore_backup(url, home=home, file=file, replace=replace, tell=stores.silent)


def dialect(url: str) -> migrate.Dialect:
    return "sqlite" if url.startswith("sqlite") else "postgres"


def test_a_backup_of_either_database_can_be_restored_into_either(
    store_url: str, target: str, tmp_path: Path
) -> None:
    stores.fill(store_url, tmp_path)
    file = create_backup(
        store_url, home=tmp_path, file=tmp_path / "backup", tell=stores.silent
    ).file
    url = target if dialect(store_url) != "sqlite" or target != SQLITE else OTHER
    found = restored(url, tmp_path, file)
    assert stores.differing(store_url, url, tmp_path) == stores.FORGOTTEN
    assert stores.read(url, tmp_path, invariants.check) == []
    assert (found.previous_store, found.unfinished_work.running, found.unfinished_work.unknown) == (
        None,
        1,
        2,
    )
    # A number is never given twice, also where the last rows are gone.
    assert stores.write(url, tmp_path, acting.accept, acting.message("inb_3")) is not None
    last = stores.read(url, tmp_path, lambda t: t.fetch_all("SELECT n FROM inbox ORDER BY n"))
    assert [row[0] for row in last] == [1, 2, 3]


def test_old_processes_are_dropped_and_their_turns_continue(
    target: str, backup: Path, tmp_path: Path
) -> None:
    restored(target, tmp_path, backup)

    def look(t: Tx) -> None:
        assert t.fetch_all("SELECT owner, expires_at FROM lease") == [(None, None)]
        for table in ("owner", "client", "lock"):
            assert t.fetch_one(f"SELECT 1 FROM {table}") is None
        assert due_work.find_due_work(t, me=OwnerId("own_next")) == {"cnv_1": 0}
        states = dict(t.fetch_all("SELECT id, state FROM delivery"))  # pyright: ignore[reportArgumentType]
        parts = dict(t.fetch_all("SELECT delivery_id, state FROM delivery_chunk"))  # pyright: ignore[reportArgumentType]
        assert states == parts
        assert {name.removeprefix("dlv_"): state for name, state in states.items()} == {
            "delivered": "delivered",
            "failed": "failed",
            # A delivery that was pending at the backup may have been sent since.
            "pending": "unknown",
            "sending": "unknown",
            "unknown": "unknown",
        }

    stores.read(target, tmp_path, look)
    begun = stores.write(target, tmp_path, acting.begin, OwnerId("own_next"))
    assert (acting.the_turn(begun).id, begun.resumed) == ("trn_2", True)
    assert acting.the_turn(begun).resumes == 0, "a restore is no crash of the turn's doing"


def test_a_message_that_had_no_parts_yet_may_have_arrived_as_well(
    target: str, backup: Path, tmp_path: Path
) -> None:
    stores.write(OTHER, tmp_path, lambda t: t.execute("DELETE FROM delivery_chunk"))
    create_backup(OTHER, home=tmp_path, file=backup, tell=stores.silent)
    restored(target, tmp_path, backup)
    for name in ("pending", "sending"):
        parts = stores.write(
            target, tmp_path, deliveries.store_chunks, DeliveryId(f"dlv_{name}"), ["one", "two"]
        )
        assert [part.state for part in parts] == [DeliveryState.UNKNOWN] * 2


def test_the_owner_of_then_cannot_write_any_more(target: str, backup: Path, tmp_path: Path) -> None:
    then = stores.read(OTHER, tmp_path, lambda t: t.fetch_all("SELECT fence FROM lease"))
    restored(target, tmp_path, backup)
    now = stores.read(target, tmp_path, lambda t: t.fetch_all("SELECT fence FROM lease"))
    assert now > then


def test_a_store_that_is_not_empty_is_replaced_only_on_demand_and_kept(
    target: str, backup: Path, tmp_path: Path
) -> None:
    stores.write(target, tmp_path, acting.accept, acting.message("inb_mine"))
    with pytest.raises(UsageError, match="--replace"):
        restored(target, tmp_path, backup)
    inputs = "SELECT id FROM inbox ORDER BY n"
    assert stores.read(target, tmp_path, lambda t: t.fetch_all(inputs)) == [("inb_mine",)]
    found = restored(target, tmp_path, backup, replace=True)
    assert stores.read(target, tmp_path, lambda t: t.fetch_all(inputs)) == [("inb_1",), ("inb_2",)]
    assert found.previous_store is not None
    if target == SQLITE:
        assert stores.read(
            f"sqlite:///{found.previous_store}", tmp_path, lambda t: t.fetch_all(inputs)
        ) == [("inb_mine",)]
    else:
        schema = found.previous_store.rpartition(" ")[2]
        kept = stores.read(target, tmp_path, _in_schema(schema))
        assert kept == [("inb_mine",)]
    assert restored(target, tmp_path, backup, replace=True).previous_store != found.previous_store


def _in_schema(schema: str) -> Callable[[Tx], object]:
    def look(t: Tx) -> object:
        return t.fetch_all(f"SELECT id FROM {schema}.inbox ORDER BY n")  # pyright: ignore[reportArgumentType]

    return look


def test_a_store_without_messages_is_replaced_silently(
    target: str, backup: Path, tmp_path: Path
) -> None:
    stores.write(target, tmp_path, owners.mark_owner_ended, OwnerId("own_nobody"))
    assert restored(target, tmp_path, backup).previous_store is None
    assert not [path.name for path in tmp_path.iterdir() if ".before-" in path.name]
    assert stores.differing(OTHER, target, tmp_path) == stores.FORGOTTEN


def test_nothing_is_restored_under_a_running_owner(
    target: str, backup: Path, tmp_path: Path
) -> None:
    async def run() -> None:
        async with await open_store(target, home=tmp_path) as store:
            me = OwnerId("own_running")
            await store.register_owner(me)
            await store.write(
                owners.register_owner, me, host="h", pid=77, role="serve", version="0"
            )
            for replace in (False, True):
                with pytest.raises(StoreInUse, match="serve, pid 77 on h"):
                    await asyncio.to_thread(restored, target, tmp_path, backup, replace=replace)
            assert await store.read(count_table_rows)

    asyncio.run(run())
    restored(target, tmp_path, backup)


@pytest.mark.postgres
def test_a_lease_that_is_not_over_counts_as_a_running_owner_on_postgresql(
    postgres_databases: Databases, backup: Path, tmp_path: Path
) -> None:
    def hold(t: Tx) -> None:
        acting.accept(t, acting.message("inb_1"))
        acting.begin(t)

    with postgres_databases.migrated() as url:
        stores.write(url, tmp_path, hold)
        with pytest.raises(StoreInUse, match="own_me ends in"):
            restored(url, tmp_path, backup, replace=True)


def test_nothing_is_restored_while_the_file_is_open_elsewhere(backup: Path, tmp_path: Path) -> None:
    async def run() -> None:
        async with await open_store(SQLITE, home=tmp_path) as store:
            with pytest.raises(StoreInUse, match="has the store"):
                await asyncio.to_thread(restored, SQLITE, tmp_path, backup)
            await store.write(acting.accept, acting.message("inb_mine"))

    asyncio.run(run())
    assert stores.read(SQLITE, tmp_path, count_table_rows)["inbox"] == 1


@pytest.mark.parametrize("place", [100, 5000, 150_000, -3000])
def test_a_damaged_backup_is_refused_before_anything_is_touched(
    place: int, backup: Path, tmp_path: Path
) -> None:
    stores.write(SQLITE, tmp_path, acting.accept, acting.message("inb_mine"))
    with backup.open("r+b") as file:
        file.seek(place, os.SEEK_SET if place >= 0 else os.SEEK_END)
        file.write(os.urandom(2000))
    with pytest.raises((StoreDamaged, StoreUnusable), match="nothing was changed"):
        restored(SQLITE, tmp_path, backup, replace=True)
    assert stores.read(SQLITE, tmp_path, count_table_rows)["inbox"] == 1


def test_one_flipped_bit_is_found_wherever_it_is(backup: Path, tmp_path: Path) -> None:
    data = backup.read_bytes()
    # In a page, in the bytes of an attachment, in the seal.
    for place in (20_000, data.index(bytes(range(100))), len(data) - 20):
        backup.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(StoreDamaged, match="damaged"):
            restored(SQLITE, tmp_path, backup)
    assert not (tmp_path / "clew.db").exists()


def _run(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    fetch_rows(connection, sql)
    connection.close()


def test_a_file_that_is_not_a_backup_is_recognised(backup: Path, tmp_path: Path) -> None:
    shutil.copy(backup, tmp_path / "unfinished")
    _run(tmp_path / "unfinished", f"PRAGMA user_version = {UNFINISHED}")
    shutil.copy(tmp_path / "other.db", tmp_path / "newer")
    _run(tmp_path / "newer", "INSERT INTO migration VALUES (9999, 'later', '', 0)")
    (tmp_path / "cut").write_bytes(backup.read_bytes()[:-50])
    (tmp_path / "letter").write_text("Dear Theseus")
    stores.fill(SQLITE, tmp_path)
    for name, error, reason in [
        ("nowhere", UsageError, "there is no backup"),
        (".", UsageError, "not a file"),
        ("letter", StoreUnusable, "not a backup"),
        ("unfinished", StoreUnusable, "never finished"),
        ("newer", StoreUnusable, "newer Clew"),
        ("cut", StoreDamaged, "its end is missing"),
        ("clew.db", UsageError, "the store itself"),
    ]:
        with pytest.raises(error, match=reason):
            restored(SQLITE, tmp_path, tmp_path / name, replace=True)
    backup.rename(files.older_path(backup, 1))
    with pytest.raises(UsageError, match=r"backup\.1 is an older backup"):
        restored(SQLITE, tmp_path, backup, replace=True)


def test_a_store_that_was_copied_by_hand_can_be_restored(tmp_path: Path) -> None:
    stores.fill(OTHER, tmp_path)
    found = restored(SQLITE, tmp_path, tmp_path / "other.db")
    assert found.taken_at is None
    assert stores.differing(OTHER, SQLITE, tmp_path) == stores.FORGOTTEN


def newer_clew(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this is a Clew that has one migration more."""
    known = migrate.load_migrations

    def migrations(dialect: migrate.Dialect) -> list[migrate.Migration]:
        sql = "CREATE TABLE invention (id TEXT PRIMARY KEY); INSERT INTO invention VALUES ('wheel')"
        return [*known(dialect), migrate.Migration(number=9999, name="later", sql=sql)]

    monkeypatch.setattr(migrate, "load_migrations", migrations)


def test_a_backup_of_an_older_clew_is_brought_up_to_date(
    target: str, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer_clew(monkeypatch)
    restored(target, tmp_path, backup)
    found = stores.read(target, tmp_path, lambda t: t.fetch_all("SELECT id FROM invention"))
    assert found == [("wheel",)]
    assert stores.read(target, tmp_path, count_table_rows)["entry"] == 22


def test_the_store_of_an_older_clew_is_backed_up_as_it_is(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores.fill(store_url, tmp_path)
    newer_clew(monkeypatch)
    file = create_backup(
        store_url, home=tmp_path, file=tmp_path / "backup", tell=stores.silent
    ).file
    url = f"sqlite:///{file}"
    assert stores.read(url, tmp_path, migrate.find_pending_migrations) == ["later"]
    with pytest.raises(StoreUnusable, match="lacks later"):
        migrate_store(store_url, "sqlite:///moved.db", home=tmp_path, tell=stores.silent)


@pytest.mark.parametrize("damage", ["header", "pages"])
def test_a_backup_takes_the_place_of_a_store_that_is_beyond_use(
    damage: str, backup: Path, tmp_path: Path
) -> None:
    store = tmp_path / "clew.db"
    stores.fill(SQLITE, tmp_path)
    with store.open("r+b") as file:
        file.seek(0 if damage == "header" else 4096)
        file.write(os.urandom(200_000))
    (tmp_path / "clew.db-wal").write_bytes(b"left by a crash")
    with pytest.raises(UsageError, match="--replace"):
        restored(SQLITE, tmp_path, backup)
    found = restored(SQLITE, tmp_path, backup, replace=True)
    assert found.previous_store is not None
    assert stores.differing(OTHER, SQLITE, tmp_path) == stores.FORGOTTEN


def test_the_log_of_a_store_that_is_gone_is_not_taken_for_the_restored_ones(
    backup: Path, tmp_path: Path
) -> None:
    async def leave_a_log() -> None:
        async with await open_store(SQLITE, home=tmp_path) as store:
            await store.write(acting.accept, acting.message("inb_lost"))
            for name in ("clew.db", "clew.db-wal"):
                shutil.copy(tmp_path / name, tmp_path / f"{name}.kept")

    asyncio.run(leave_a_log())
    (tmp_path / "clew.db").unlink()
    (tmp_path / "clew.db-wal.kept").rename(tmp_path / "clew.db-wal")
    restored(SQLITE, tmp_path, backup)
    assert stores.differing(OTHER, SQLITE, tmp_path) == stores.FORGOTTEN


def test_a_restored_store_is_for_its_owner_alone_and_has_nothing_beside_it(
    backup: Path, tmp_path: Path
) -> None:
    restored(SQLITE, tmp_path, backup)
    assert stat.S_IMODE((tmp_path / "clew.db").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("clew.db*")] == ["clew.db"]
    assert read_stamp(tmp_path / "clew.db") == STORE


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at open files, as Linux can")
def test_opening_a_store_while_it_is_replaced_gives_the_new_one(
    backup: Path, tmp_path: Path
) -> None:
    store = tmp_path / "clew.db"
    stores.write(SQLITE, tmp_path, acting.accept, acting.message("inb_mine"))

    async def open_and_read() -> object:
        async with await open_store(SQLITE, home=tmp_path) as opened:
            return await opened.read(lambda t: t.fetch_all("SELECT id FROM inbox ORDER BY n"))

    restoring = apsw.Connection(str(store))
    for sql in ("PRAGMA journal_mode = DELETE", "BEGIN EXCLUSIVE"):
        fetch_rows(restoring, sql)
    with ThreadPoolExecutor(1) as thread:
        opened = thread.submit(lambda: asyncio.run(open_and_read()))
        until(lambda: _open_files().count(str(store)) > 1)
        shutil.copy(tmp_path / "other.db", tmp_path / "built")
        (tmp_path / "built").replace(store)
        restoring.close()
        assert opened.result() == [("inb_1",), ("inb_2",)]


def _open_files() -> list[str]:
    found: list[str] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(descriptor.readlink()))
    return found


def test_a_killed_restore_leaves_nothing_in_the_way(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "clew.db.incoming").write_bytes(b"Clew: unfinished" + os.urandom(100_000))
    (tmp_path / "clew.db.incoming-wal").write_bytes(os.urandom(10_000))
    restored(SQLITE, tmp_path, backup)
    assert stores.differing(OTHER, SQLITE, tmp_path) == stores.FORGOTTEN
    assert [path.name for path in tmp_path.glob("clew.db*")] == ["clew.db"]


def test_a_restore_that_is_stopped_leaves_the_store_as_it_is(
    target: str, backup: Path, tmp_path: Path
) -> None:
    stores.write(target, tmp_path, acting.accept, acting.message("inb_mine"))

    def pressed(what: str, _done: int, _total: int) -> None:
        if what.startswith("copying"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore_backup(target, home=tmp_path, file=backup, replace=True, tell=pressed)
    mine = stores.read(target, tmp_path, lambda t: t.fetch_all("SELECT id FROM inbox"))
    assert mine == [("inb_mine",)]
    assert restored(target, tmp_path, backup, replace=True).unfinished_work.running == 1
