"""A damaged search index on SQLite: nothing but search notices, and it is made anew."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import apsw
import pytest

from clew.errors import SearchNotReady
from clew.store.maintenance import erase_conversation, update_index
from clew.store.opening import open_store
from clew.store.sqlite.driver import fetch_rows
from clew.store.transactions.deletion import mark_deleted
from clew.store.transactions.entries import read_entries
from tests.contract.search_log import Log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from clew.store.contract import Row, Store

SCHEMA = "SELECT name, sql FROM sqlite_schema ORDER BY name"
ROOT = "SELECT rootpage FROM sqlite_schema WHERE name = 'search_index_data'"
#: Damage to the tables behind the index.
_SET = "UPDATE search_index_data SET block = "
DAMAGE = {
    "a page of the index overwritten": _SET + "randomblob(500) WHERE id > 10",
    "the root of the index overwritten": _SET + "zeroblob(9) WHERE id = 10",
    "the root of the index gone": "DELETE FROM search_index_data WHERE id = 10",
    "pages of the index gone": "DELETE FROM search_index_data WHERE id > 10",
    "a table gone": "DROP TABLE search_index_data",
    "the table of pages gone": "DROP TABLE search_index_idx",
    "the table of settings gone": "DROP TABLE search_index_config",
    "a page of the file overwritten": None,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clew.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    async with await open_store(f"sqlite:///{path}", home=path.parent) as opened:
        yield opened


def harm(path: Path, sql: str | None) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        if sql is not None:
            fetch_rows(connection, sql)
            return
        ((page,),) = fetch_rows(connection, ROOT)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))


def schema(path: Path) -> list[Row]:
    with closing(apsw.Connection(str(path))) as connection:
        return fetch_rows(connection, SCHEMA)


@pytest.mark.parametrize("damage", DAMAGE)
async def test_conversations_continue_and_search_explains_its_outage_and_recovers(
    path: Path, damage: str
) -> None:
    url = f"sqlite:///{path}"
    async with await open_store(url, home=path.parent) as store:
        log = await Log.open(store)
        await log.say(*(f"word {n}" for n in range(50)))
        await update_index(store)
        before = schema(path)
    harm(path, DAMAGE[damage])
    async with await open_store(url, home=path.parent) as store:
        log = Log(store, log.lease, log.session, log.scope)
        await log.say("word after it")
        found = await store.read(read_entries, log.id, first=1, last=100)
        assert len(found) == 51
        with pytest.raises(SearchNotReady, match="rebuilt"):
            await log.find("word")
        await update_index(store)
        assert await log.find("word") == [*range(51, 0, -1)]
        left = [item for item in schema(path) if item not in before]
        assert len(left) == (1 if damage == "a page of the file overwritten" else 0)


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_conversation_can_be_deleted_with_a_damaged_index(path: Path, damage: str) -> None:
    url = f"sqlite:///{path}"
    async with await open_store(url, home=path.parent) as store:
        kept, gone = await Log.open(store), await Log.open(store)
        await kept.say("a kept word")
        await gone.say(*(f"lost word {n}" for n in range(60)))
        await update_index(store)
    harm(path, DAMAGE[damage])
    async with await open_store(url, home=path.parent) as store:
        await store.write(mark_deleted, gone.id)
        await erase_conversation(store, gone.id)
        kept = Log(store, kept.lease, kept.session, kept.scope)
        with suppress(SearchNotReady):  # not every damage shows when rows are removed
            await kept.find("word")
        await update_index(store)
        assert await kept.find("word") == [1]


async def test_the_words_of_a_deleted_conversation_are_not_in_the_index_any_more(
    store: Store, path: Path
) -> None:
    kept, gone = await Log.open(store), await Log.open(store)
    for n in range(20):
        await kept.say(f"kept {n}")
        await gone.say(f"lost {n}")
        await update_index(store)
    await store.write(mark_deleted, gone.id)
    await erase_conversation(store, gone.id)
    with closing(apsw.Connection(str(path))) as connection:
        blocks = [row[0] for row in fetch_rows(connection, "SELECT block FROM search_index_data")]
    assert any(b"kept" in block for block in blocks)
    assert not any(b"lost" in block for block in blocks)
