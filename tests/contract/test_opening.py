"""A store that cannot be used says why and what to do, and nothing in it is changed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import apsw
import psycopg
import pytest

from clew.core.ids import SessionId
from clew.errors import NotFound, StoreDamaged, StoreError, StoreUnusable
from clew.store.migrate import migrate_schema
from clew.store.opening import open_store
from clew.store.postgres import open_postgres
from clew.store.sqlite import open_sqlite
from clew.store.sqlite.driver import fetch_rows
from clew.store.sqlite.opening import prepare_file
from clew.store.transactions import sessions
from tests.contract import acting, invariants

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx

NEWER = "INSERT INTO migration (number, name, sha256, applied_at) VALUES (999, 'later', 'x', 0)"
OTHER = "UPDATE migration SET sha256 = 'another'"


async def make(url: str, home: Path, *statements: str) -> None:
    """A store with a conversation in it, and what somebody else did to it."""
    async with await open_store(url, home=home) as store:
        await store.write(acting.accept, acting.message("inb_1"))
    if statements and url.startswith("sqlite"):
        _execute(home / "clew.db", *statements)
    elif statements:
        with psycopg.connect(url, autocommit=True) as postgres:
            for statement in statements:
                postgres.execute(statement.encode())


def _execute(file: Path, *statements: str) -> None:
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        for statement in statements:
            fetch_rows(connection, statement)


def contents(url: str, home: Path) -> object:
    """All bytes of a file; all rows of the tables that opening would touch."""
    if url.startswith("sqlite"):
        return (home / "clew.db").read_bytes()
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        ).fetchall()
        return tables, *(
            connection.execute(f"SELECT * FROM {table}".encode()).fetchall() for (table,) in tables
        )


@pytest.mark.parametrize(
    ("statement", "words"), [(NEWER, "newer Clew.*upgrade"), (OTHER, "not the one of this Clew")]
)
async def test_a_store_of_another_version_is_left_alone(
    new_store_url: str, tmp_path: Path, statement: str, words: str
) -> None:
    await make(new_store_url, tmp_path, statement)
    before = contents(new_store_url, tmp_path)
    with pytest.raises(StoreUnusable, match=words):
        await open_store(new_store_url, home=tmp_path)
    assert contents(new_store_url, tmp_path) == before


async def test_the_database_of_another_program_is_left_alone(
    new_store_url: str, tmp_path: Path
) -> None:
    if new_store_url.startswith("sqlite"):
        _execute(tmp_path / "clew.db", "CREATE TABLE their_own (id INTEGER)")
    else:
        with psycopg.connect(new_store_url) as connection:
            connection.execute("CREATE TABLE their_own (id INTEGER)")
    before = contents(new_store_url, tmp_path)
    with pytest.raises(StoreUnusable, match="another program"):
        await open_store(new_store_url, home=tmp_path)
    assert contents(new_store_url, tmp_path) == before


async def test_a_migration_that_is_interrupted_leaves_nothing_behind(
    new_store_url: str, tmp_path: Path
) -> None:
    """All that is missing is applied in one transaction: half a schema is none."""
    sqlite = new_store_url.startswith("sqlite")
    bare = (
        open_sqlite(tmp_path / "clew.db", run_dir=tmp_path)
        if sqlite
        else open_postgres(new_store_url)
    )
    async with await bare as store:
        with pytest.raises(ZeroDivisionError):
            await store.write(_interrupted)
    async with await open_store(new_store_url, home=tmp_path) as store:
        await store.write(acting.accept, acting.message("inb_1"))
        assert await store.read(invariants.check) == []


def _interrupted(t: Tx) -> None:
    migrate_schema(t)
    raise ZeroDivisionError


@pytest.mark.parametrize("content", [b"not a database at all", b"SQLite format 3\0 but broken" * 9])
async def test_a_file_that_is_not_a_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "clew.db"
    file.write_bytes(content)
    with pytest.raises(StoreError):
        await open_store("sqlite:///clew.db", home=tmp_path)
    assert file.read_bytes() == content


async def test_a_corrupt_page_is_reported_and_nothing_is_written(tmp_path: Path) -> None:
    await make("sqlite:///clew.db", tmp_path)
    file = tmp_path / "clew.db"
    content = bytearray(file.read_bytes())
    content[4096 : len(content) // 2] = b"\xa5" * (len(content) // 2 - 4096)
    file.write_bytes(content)
    with pytest.raises(StoreDamaged):
        async with await open_store("sqlite:///clew.db", home=tmp_path) as store:
            await store.read(acting.head)
    assert file.read_bytes() == bytes(content)


def test_a_network_file_system_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    file = tmp_path / "new" / "clew.db"
    with pytest.raises(StoreUnusable, match=r"network file system \(nfs4\)"):
        prepare_file(file, run_dir=tmp_path / "run", filesystem_of=lambda _: "nfs4")
    assert list(tmp_path.iterdir()) == []


async def test_a_failed_job_leaves_no_writes(new_store_url: str, tmp_path: Path) -> None:
    """3.8: all of a transaction, or nothing."""

    def job(t: Tx) -> None:
        acting.accept(t, acting.message("inb_2"))
        sessions.get_session(t, SessionId("ses_none"))

    await make(new_store_url, tmp_path)
    async with await open_store(new_store_url, home=tmp_path) as store:
        with pytest.raises(NotFound):
            await store.write(job)
        assert await store.read(_inputs) == ["inb_1"]


def _inputs(t: Tx) -> list[str]:
    return [row[0] for row in t.fetch_all("SELECT id FROM inbox ORDER BY n")]
