"""Every reason not to open a store, told before anything is written."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from clew.core.ids import ConversationId, new_session_id
from clew.core.scope import LOCAL
from clew.errors import StoreDamaged, StoreNotEmpty, StoreUnavailable, StoreUnusable
from clew.store import health
from clew.store.migrate import migrate_schema
from clew.store.opening import open_staged_store, open_store, open_sync_store
from clew.store.sqlite import detect_filesystem, open_sqlite
from clew.store.sqlite.driver import fetch_rows
from clew.store.sqlite.filesystems import Locality, classify_filesystem
from clew.store.sqlite.opening import connect, open_writer, prepare_file, reject_old_sqlite
from clew.store.transactions import conversations
from tests.integration.sqlite_jobs import append, child, items, line_of, make_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clew.store.contract import Tx
    from clew.store.sqlite import SqliteStore


async def open_in(folder: Path) -> SqliteStore:
    return await open_sqlite(folder / "clew.db", run_dir=folder / "run")


def contents(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


async def refused(folder: Path) -> str:
    """Return the reason why opening fails; check that it changed nothing."""
    before = contents(folder)
    with pytest.raises(StoreUnusable) as refusal:
        await open_in(folder)
    assert contents(folder) == before
    return str(refusal.value)


async def test_a_new_store_is_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with await open_in(home) as store:
        await store.write(make_log)
        files = [home / name for name in ("clew.db", "clew.db-wal", "clew.db-shm")]
        assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 3
        assert home.stat().st_mode & 0o777 == 0o700
        assert (home / "run").stat().st_mode & 0o777 == 0o700


async def test_a_store_is_there_again_after_closing(tmp_path: Path) -> None:
    async with await open_in(tmp_path) as store:
        await store.write(make_log)
        await store.write(append, "x")
    async with await open_in(tmp_path) as store:
        assert await store.read(items) == ["x"]


async def test_a_relative_path_survives_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with await open_in(Path("home")) as store:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        await store.write(make_log)
        await store.register_owner("own_1")
        assert await store.read(items) == []
        await store.check_available()


async def test_connections_are_set_up_for_safety(tmp_path: Path) -> None:
    async with await open_in(tmp_path):
        for reader in (True, False):
            connection = connect(tmp_path / "clew.db", reader=reader)
            settings = {
                name: fetch_rows(connection, f"PRAGMA {name}")[0][0]
                for name in ("journal_mode", "synchronous", "foreign_keys", "query_only")
            }
            assert settings == {
                "journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "query_only": reader,
            }  # fmt: skip
            connection.close()


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "clew.db").write_text("my diary\n" * 100)
    assert "is not a database" in await refused(tmp_path)


async def test_a_file_that_only_begins_like_a_database_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "clew.db").write_bytes(b"SQLite format 3\0" + b"?" * 5000)
    assert "is not a database" in await refused(tmp_path)


async def test_a_folder_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "clew.db").mkdir()
    assert "is not a file" in await refused(tmp_path)


async def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "clew.db")
    other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    assert "belongs to another program" in await refused(tmp_path)


async def test_a_copy_that_is_not_in_wal_mode_opens(tmp_path: Path) -> None:
    async with await open_in(tmp_path / "one") as store:
        await store.write(make_log)
        await store.write(append, "x")
    (tmp_path / "two").mkdir()
    connection = apsw.Connection(str(tmp_path / "one" / "clew.db"))
    fetch_rows(connection, "VACUUM INTO ?1", str(tmp_path / "two" / "clew.db"))
    connection.close()
    async with await open_in(tmp_path / "two") as store:
        assert await store.read(items) == ["x"]
        assert await store.read(health.read_journal_mode) == "delete"


@pytest.fixture
def shared_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path is on a file system that Clew does not know to be this machine's own."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text("21 1 0:5 / / rw - virtiofs root rw\n")
    monkeypatch.setattr("clew.store.sqlite.filesystems.MOUNTS", mounts)


@pytest.mark.usefixtures("shared_disk")
async def test_a_disk_that_may_not_share_memory_gets_a_rollback_journal(tmp_path: Path) -> None:
    async with await open_in(tmp_path) as store, await open_in(tmp_path) as other:
        await store.write(make_log)
        await asyncio.gather(
            *(store.write(append, f"a{n}") for n in range(50)),
            *(other.write(append, f"b{n}") for n in range(50)),
            *(other.read(items) for _ in range(50)),
        )
        assert len(await store.read(items)) == 100
        assert await store.read(health.read_journal_mode) == "delete"
        assert not (tmp_path / "clew.db-wal").exists()


@pytest.mark.usefixtures("shared_disk")
async def test_without_wal_a_commit_waits_for_those_who_read(tmp_path: Path) -> None:
    async with await open_in(tmp_path) as store:
        await store.write(make_log)
        reading, go_on = threading.Event(), threading.Event()

        def read_long(t: Tx) -> int:
            found = len(items(t))
            reading.set()
            assert go_on.wait(60)
            return found

        before = asyncio.create_task(store.read(read_long))
        await asyncio.to_thread(reading.wait)
        writing = asyncio.create_task(store.write(append, "x"))
        done, _ = await asyncio.wait({writing}, timeout=0.3)
        assert not done
        go_on.set()
        await writing
        assert await before == 0
        assert await store.read(items) == ["x"]


@pytest.mark.usefixtures("shared_disk")
async def test_without_wal_a_commit_that_readers_hold_up_for_long_is_refused_and_stores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.store.sqlite.writer_maintenance.LOCK_TIMEOUT", 0.05)
    async with await open_in(tmp_path) as store:
        await store.write(make_log)
        reader = connect(tmp_path / "clew.db", reader=True)
        fetch_rows(reader, "BEGIN")
        fetch_rows(reader, "SELECT * FROM log")
        with pytest.raises(StoreUnavailable):
            await store.write(append, "x")
        fetch_rows(reader, "ROLLBACK")
        reader.close()
        await store.write(append, "y")
        assert await store.read(items) == ["y"]


async def test_a_store_moved_to_such_a_disk_leaves_wal(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with await open_in(tmp_path) as store:
        await store.write(make_log)
        assert await store.read(health.read_journal_mode) == "wal"
    request.getfixturevalue("shared_disk")
    async with await open_in(tmp_path) as store:
        assert await store.read(health.read_journal_mode) == "delete"


async def test_a_journal_mode_set_by_the_user_is_kept(tmp_path: Path) -> None:
    async with await open_in(tmp_path) as store:
        await store.write(make_log)
    by_hand = apsw.Connection(str(tmp_path / "clew.db"))
    fetch_rows(by_hand, "PRAGMA journal_mode = DELETE")
    by_hand.close()
    async with await open_in(tmp_path) as store:
        await store.write(append, "x")
        assert await store.read(health.read_journal_mode) == "delete"


@pytest.mark.parametrize(
    ("kind", "locality"),
    [
        *((kind, Locality.LOCAL) for kind in ("ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs")),
        *((kind, Locality.LOCAL) for kind in ("", "f2fs", "ntfs3", "fuseblk")),
        *((kind, Locality.UNKNOWN) for kind in ("virtiofs", "drvfs", "prl_fs", "fakeowner")),
        *((kind, Locality.UNKNOWN) for kind in ("vmhgfs", "fuse.vmhgfs-fuse", "fuse.mergerfs")),
        *((kind, Locality.UNKNOWN) for kind in ("fuse.gocryptfs", "fuse", "grpcfuse", "lofs")),
        *((kind, Locality.NETWORK) for kind in ("nfs4", "cifs", "smb3", "9p", "fuse.sshfs")),
    ],
)
def test_only_known_local_disks_are_trusted(kind: str, locality: Locality) -> None:
    assert classify_filesystem(kind) is locality


@pytest.mark.parametrize("open_", [open_sync_store, open_staged_store], ids=["backup", "restore"])
def test_nothing_that_opens_a_store_takes_an_old_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_: Callable[..., object]
) -> None:
    (tmp_path / "clew.db").touch()
    for module in ("sync_store", "opening"):
        monkeypatch.setattr(f"clew.store.sqlite.{module}.sqlite_version", lambda: "3.40.1")
    with pytest.raises(StoreUnusable, match=r"3\.40\.1"):
        open_("sqlite:///clew.db", home=tmp_path)


def test_a_backup_reads_no_store_over_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clew.db").touch()
    (tmp_path / "mountinfo").write_text("21 1 0:5 / / rw - nfs4 root rw\n")
    monkeypatch.setattr("clew.store.sqlite.filesystems.MOUNTS", tmp_path / "mountinfo")
    with pytest.raises(StoreUnusable, match="network file system"):
        open_sync_store("sqlite:///clew.db", home=tmp_path)


async def test_a_damaged_database_is_called_damaged(tmp_path: Path) -> None:
    async with await open_in(tmp_path) as store:
        await store.write(make_log)
        for n in range(20):
            await store.write(append, f"{n}", size=4000)
    path = tmp_path / "clew.db"
    raw = bytearray(path.read_bytes())
    for page in range(1, len(raw) // 4096):
        raw[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    path.write_bytes(raw)
    async with await open_in(tmp_path) as store:
        with pytest.raises(StoreDamaged):
            await store.read(items)
        with pytest.raises(StoreDamaged):
            await store.write(append, "x")


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody can enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="becomes nobody")
@pytest.mark.parametrize(
    ("name", "mode"), [("", 0o555), ("clew.db", 0o444), ("run", 0o555), ("clew.db", 0o000)]
)
async def test_an_unwritable_file_is_named(public: Path, name: str, mode: int) -> None:
    home = public / "home"
    async with await open_in(home):
        pass
    for path in (home, home / "clew.db", home / "run"):
        path.chmod(0o777)
    (home / name).chmod(mode)
    before = contents(home)
    with child("open_as_nobody", home) as process:
        message = line_of(process)
    assert str(home / name) in message
    assert "cannot be" in message
    assert contents(home) == before


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnusable, match="cannot be made"):
        await open_in(tmp_path / "file" / "home")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "smb3", "9p", "fuse.sshfs"])
def test_a_network_file_system_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(StoreUnusable, match=kind):
        prepare_file(
            tmp_path / "home" / "clew.db",
            run_dir=tmp_path / "home" / "run",
            filesystem_of=lambda _path: kind,
        )
    assert contents(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_the_owners_folder_must_be_local_too(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="run"):
        prepare_file(
            tmp_path / "clew.db",
            run_dir=tmp_path / "run",
            filesystem_of=lambda path: "nfs" if path.name == "run" else "ext4",
        )


def test_the_file_system_is_found_before_the_file_is_there(tmp_path: Path) -> None:
    assert detect_filesystem(Path("/proc/nothing/here")) == "proc"
    assert detect_filesystem(tmp_path / "not" / "yet") == detect_filesystem(tmp_path)
    assert detect_filesystem(tmp_path) != ""


def test_a_mount_is_found_by_its_longest_path_and_the_last_on_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "21 1 8:1 / / rw - ext4 /dev/vda rw\n"
        "22 21 0:5 / /mnt rw shared:1 - nfs4 host:/x rw\n"
        "23 21 0:6 / /mnt rw shared:1 - xfs /dev/vdb rw\n"
        "24 21 0:7 / /mnt/with\\040space rw - fuse.sshfs me@host: rw\n"
    )
    monkeypatch.setattr("clew.store.sqlite.filesystems.MOUNTS", mounts)
    kinds = [detect_filesystem(Path(p)) for p in ("/x", "/mnt/x", "/mntx", "/mnt/with space/x")]
    assert kinds == ["ext4", "xfs", "ext4", "fuse.sshfs"]
    monkeypatch.setattr("clew.store.sqlite.filesystems.MOUNTS", tmp_path / "none")
    assert detect_filesystem(Path("/x")) == ""


@pytest.mark.parametrize("version", ["3.51.2", "3.40.1"])
def test_an_old_sqlite_is_refused(version: str) -> None:
    with pytest.raises(StoreUnusable, match=r"3\.51\.3"):
        reject_old_sqlite(version)


@pytest.mark.parametrize("version", ["3.51.3", "3.54.1", "4.0.0"])
def test_a_newer_sqlite_is_taken(version: str) -> None:
    reject_old_sqlite(version)


@pytest.fixture
def without_shared_memory() -> Iterator[None]:
    """SQLite on a disk that cannot share memory among processes."""
    apsw.set_default_vfs("unix-dotfile")
    yield
    apsw.set_default_vfs("unix")


@pytest.mark.usefixtures("without_shared_memory")
async def test_a_disk_without_wal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="WAL"):
        await open_in(tmp_path)


async def test_a_locked_database_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.store.sqlite.opening.LOCK_TIMEOUT", 0.0)
    prepare_file(tmp_path / "clew.db", run_dir=tmp_path / "run")
    other = apsw.Connection(str(tmp_path / "clew.db"))
    fetch_rows(other, "BEGIN EXCLUSIVE")
    with pytest.raises(StoreUnavailable):
        open_writer(tmp_path / "clew.db")
    other.close()
    open_writer(tmp_path / "clew.db").close()


async def test_a_replacement_that_is_refused_leaves_the_store_in_its_journal_mode(
    tmp_path: Path,
) -> None:
    url = "sqlite:///clew.db"
    async with await open_store(url, home=tmp_path) as store:
        await store.write(
            conversations.open_conversation,
            ConversationId("cnv_1"),
            scope=LOCAL,
            session_ids=new_session_id,
        )
    built = open_staged_store(url, home=tmp_path)
    built.store.write(migrate_schema)
    with pytest.raises(StoreNotEmpty):
        built.publish(replace=False)
    built.close()
    async with await open_store(url, home=tmp_path) as store:
        assert await store.read(health.read_journal_mode) == "wal"
