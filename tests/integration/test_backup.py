"""Backups (case B067): taken beside whoever uses the store, never in place of a better one."""

from __future__ import annotations

import os
import resource
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw
import pytest

from clew.errors import StoreDamaged, StoreError, StoreFull, StoreInUse, UsageError
from clew.store.backup import files
from clew.store.backup.create import BackupInfo, create_backup
from clew.store.copying.tables import count_table_rows, list_tables
from clew.store.file_header import read_stamp
from clew.store.sqlite.driver import fetch_rows
from clew.store.sqlite.staged_files import translate_os_errors
from clew.store.sqlite.sync_store import open_read_only
from tests.contract import acting
from tests.integration import stores

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from clew.store.contract import Tx

SQLITE = "sqlite:///clew.db"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "clew.backup"


def taken(home: Path, file: Path, url: str = SQLITE, keep: int = 2) -> BackupInfo:
    return create_backup(url, home=home, file=file, keep=keep, tell=stores.silent)


def names(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir())


def test_a_backup_has_every_row_of_every_table_and_is_for_its_owner_alone(
    store_url: str, tmp_path: Path, file: Path
) -> None:
    stores.fill(store_url, tmp_path)
    found = taken(tmp_path, file, store_url)
    assert found.counts == stores.read(store_url, tmp_path, count_table_rows)
    # A row about the tables of a feature would need the feature.
    own = [rows for table, rows in found.counts.items() if not table.startswith("feature_")]
    assert all(own), "a table of the store has no row to be copied"
    assert stores.differing(store_url, f"sqlite:///{file}", tmp_path) == []
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert names(file) == ["clew.backup"]
    assert read_stamp(file) == int(found.taken_at.timestamp())


def test_pages_of_the_oldest_backup_are_not_written_again(tmp_path: Path, file: Path) -> None:
    stores.fill(SQLITE, tmp_path)
    first, second = taken(tmp_path, file), taken(tmp_path, file)
    stores.write(SQLITE, tmp_path, acting.accept, acting.message("inb_9"))
    third = taken(tmp_path, file)
    pages = [found.pages for found in (first, second, third)]
    assert all(found is not None for found in pages)
    written = [found.written for found in pages if found is not None]
    assert written[0] == written[1] > 80, "each of two files has to be written once"
    assert written[2] < 20
    assert stores.differing(SQLITE, f"sqlite:///{file}", tmp_path) == []
    with open_read_only(files.older_path(file, 1)) as before:
        assert before.read(count_table_rows)["inbox"] == 2
    assert names(file) == ["clew.backup", "clew.backup.1"]


def test_as_many_backups_are_kept_as_was_asked_for(tmp_path: Path, file: Path) -> None:
    stores.fill(SQLITE, tmp_path)
    found = taken(tmp_path, file, keep=3)
    for number in range(3):
        stores.write(SQLITE, tmp_path, acting.accept, acting.message(f"inb_more_{number}"))
        found = taken(tmp_path, file, keep=3)
    assert [path.name for path in found.older] == ["clew.backup.1", "clew.backup.2"]
    sizes = list[int]()
    for path in (file, *found.older):
        with open_read_only(path) as kept:
            sizes.append(kept.read(count_table_rows)["inbox"])
    assert sizes == [5, 4, 3]
    assert taken(tmp_path, file, keep=1).older == []
    assert names(file) == ["clew.backup"]


def garble_a_page(home: Path) -> None:
    connection = apsw.Connection(str(home / "clew.db"))
    sql = "SELECT max(rootpage) FROM sqlite_schema WHERE tbl_name = 'usage'"
    ((page,),) = fetch_rows(connection, sql)
    connection.close()
    with (home / "clew.db").open("r+b") as store:
        store.seek((int(page) - 1) * 4096)
        store.write(os.urandom(4096))


def change_what_was_said(home: Path) -> None:
    def job(t: Tx) -> None:
        t.execute("DROP TRIGGER entry_never_changes")
        t.execute(
            "UPDATE entry SET text = 'I never said that' WHERE n = (SELECT max(n) FROM entry)"
        )

    stores.write(SQLITE, home, job)


def lose_what_was_said(home: Path) -> None:
    def job(t: Tx) -> None:
        t.execute("DROP TRIGGER entry_stays")
        t.execute("DELETE FROM entry WHERE n = (SELECT max(n) FROM entry)")

    stores.write(SQLITE, home, job)


@pytest.mark.parametrize(
    ("damage", "told_as"),
    [
        (garble_a_page, "damaged"),
        (change_what_was_said, "its hash does not match"),
        (lose_what_was_said, "the lease counts"),
    ],
)
def test_a_damaged_store_does_not_replace_a_good_backup(
    damage: Callable[[Path], object], told_as: str, tmp_path: Path, file: Path
) -> None:
    stores.fill(SQLITE, tmp_path)
    taken(tmp_path, file)
    good = file.read_bytes()
    damage(tmp_path)
    with pytest.raises(StoreDamaged, match=told_as) as error:
        taken(tmp_path, file)
    assert "clew fsck" in str(error.value)
    assert file.read_bytes() == good
    assert names(file) == ["clew.backup"]


@pytest.mark.postgres
def test_a_damaged_store_on_postgresql_does_not_replace_a_good_backup(
    postgres_url: str, tmp_path: Path, file: Path
) -> None:
    stores.fill(postgres_url, tmp_path)
    taken(tmp_path, file, postgres_url)
    good = file.read_bytes()

    def change(t: Tx) -> None:
        t.execute("ALTER TABLE entry DISABLE TRIGGER entry_kept")
        t.execute(
            "UPDATE entry SET text = 'I never said that' WHERE n = (SELECT max(n) FROM entry)"
        )

    stores.write(postgres_url, tmp_path, change)
    with pytest.raises(StoreDamaged, match="its hash does not match"):
        taken(tmp_path, file, postgres_url)
    assert file.read_bytes() == good
    assert names(file) == ["clew.backup"]


def test_a_repairable_fault_is_reported_and_does_not_prevent_a_backup(
    tmp_path: Path, file: Path
) -> None:
    stores.fill(SQLITE, tmp_path)
    stores.write(SQLITE, tmp_path, lambda t: t.execute("DELETE FROM attachment"))
    (told_of,) = taken(tmp_path, file).repairable
    assert "nothing refers to attachment" in told_of


def test_a_damaged_search_index_is_no_reason_against_a_backup(tmp_path: Path, file: Path) -> None:
    stores.fill(SQLITE, tmp_path)

    def damage(t: Tx) -> None:
        t.execute("UPDATE search_index_data SET block = x'00' WHERE id = 10")

    stores.write(SQLITE, tmp_path, damage)
    assert taken(tmp_path, file).counts["entry"] == 22


@pytest.mark.parametrize("moment", ["copying", "verifying"])
def test_ctrl_c_leaves_no_partial_file_and_the_backup_as_it_was(
    store_url: str, moment: str, tmp_path: Path, file: Path
) -> None:
    stores.fill(store_url, tmp_path)
    taken(tmp_path, file, store_url)
    good = file.read_bytes()

    def pressed(what: str, _done: int, _total: int) -> None:
        if what.startswith(moment):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create_backup(store_url, home=tmp_path, file=file, tell=pressed)
    assert file.read_bytes() == good
    assert names(file) == ["clew.backup"]


def test_a_killed_backup_is_not_valid_and_the_next_one_reuses_it(
    tmp_path: Path, file: Path
) -> None:
    stores.fill(SQLITE, tmp_path)
    taken(tmp_path, file)
    taken(tmp_path, file)
    partial = files.partial_path(file)
    # Killed after half of its pages: the backup before last is under way to become the next.
    files.older_path(file, 1).rename(partial)
    with partial.open("r+b") as left:
        left.write(b"Clew: unfinished")
        left.truncate(150_000)
    assert read_stamp(partial) is None
    found = taken(tmp_path, file)
    assert found.pages is not None
    assert found.pages.written < found.pages.count, "what was there was not used"
    assert stores.differing(SQLITE, f"sqlite:///{file}", tmp_path) == []
    assert names(file) == ["clew.backup", "clew.backup.1"]


def test_two_backups_to_one_file_do_not_disturb_each_other(tmp_path: Path, file: Path) -> None:
    stores.fill(SQLITE, tmp_path)
    with files.open_partial(file, keep=2), pytest.raises(StoreInUse, match="wait"):
        taken(tmp_path, file)
    taken(tmp_path, file)


def test_a_backup_is_put_in_the_place_of_nothing_else(tmp_path: Path, file: Path) -> None:
    stores.fill(SQLITE, tmp_path)
    other = tmp_path / "other.db"
    stores.fill(f"sqlite:///{other}", tmp_path)
    file.write_text("my diary")
    link = file.with_name("link")
    link.symlink_to(file)
    for wrong, reason in [
        (file, "not a backup"),
        (other, "not a backup"),
        (link, "not a regular file"),
        (file.parent, "not a regular file"),
        (tmp_path / "clew.db", "the store itself"),
        (tmp_path / "nowhere" / "clew.backup", "no folder"),
    ]:
        with pytest.raises(UsageError, match=reason):
            taken(tmp_path, wrong)
    assert file.read_text() == "my diary"
    file.rename(file.with_name("clew.backup.1"))
    with pytest.raises(UsageError, match=r"clew\.backup\.1"):
        taken(tmp_path, file)


def test_without_a_store_there_is_nothing_to_back_up(new_store_url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no store"):
        taken(tmp_path, tmp_path / "clew.backup", new_store_url)
    assert list(tmp_path.iterdir()) == []


@contextmanager
def no_room_after(size: int) -> Generator[None]:
    """No file may become larger than this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_reported_and_costs_no_backup(
    store_url: str, tmp_path: Path, file: Path
) -> None:
    stores.fill(store_url, tmp_path)
    taken(tmp_path, file, store_url, keep=1)
    with no_room_after(200_000), pytest.raises(StoreFull, match="no space left"):
        taken(tmp_path, file, store_url, keep=1)
    assert names(file) == ["clew.backup"]
    assert stores.differing(store_url, f"sqlite:///{file}", tmp_path) == []


def test_a_place_that_may_not_be_written_is_reported_with_what_to_do(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match=r"Permission denied.*change its owner or mode"),
        translate_os_errors(tmp_path),
    ):
        raise PermissionError(13, "Permission denied", str(tmp_path))


def test_both_databases_have_the_same_tables(tmp_path: Path, postgres_url: str) -> None:
    for url in (SQLITE, postgres_url):
        stores.write(url, tmp_path, acting.accept, acting.message("inb_1"))
    ours = stores.read(SQLITE, tmp_path, list_tables)
    assert ours == stores.read(postgres_url, tmp_path, list_tables)
    assert {"conversation", "entry", "blob"} < {table.name for table in ours}
    assert all(table.key for table in ours)
