"""On PostgreSQL numbers become visible out of order: the index must not pass over one of them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from clew.store.maintenance import update_index
from clew.store.opening import open_store
from clew.store.search import mark_damaged, needs_indexing, start_rebuild
from clew.store.transactions import entries
from tests.contract.search_log import Log, draft

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("anew", [False, True])
async def test_a_message_that_commits_late_is_indexed(
    postgres_url: str, tmp_path: Path, anew: bool
) -> None:
    written, go_on = threading.Event(), threading.Event()

    def slowly(t: Tx) -> None:
        entries.append_entries(t, slow.lease, slow.session, [draft("the late word")])
        written.set()
        assert go_on.wait(10)

    async with await open_store(postgres_url, home=tmp_path) as store:
        slow, fast = await Log.open(store), await Log.open(store)
        late = asyncio.create_task(store.write(slowly))
        assert await asyncio.to_thread(written.wait, 10)
        await fast.say("a quick word")
        if anew:
            await store.write(mark_damaged)
            await store.write(start_rebuild)
        await update_index(store)
        assert len((await fast.page("word")).items) == 1
        go_on.set()
        await late
        for _ in range(2):
            items = (await fast.page("word")).items
            assert [hit.conversation_id for hit in items] == [fast.id, slow.id]
            await update_index(store)


async def test_a_pending_index_row_without_a_message_blocks_nothing(
    postgres_url: str, tmp_path: Path
) -> None:
    async with await open_store(postgres_url, home=tmp_path) as store:
        log = await Log.open(store)
        await log.say("a word")
        await store.write(_await_what_is_not_there)
        await update_index(store)
        assert not await store.read(needs_indexing)
        assert len((await log.page("word")).items) == 1


def _await_what_is_not_there(t: Tx) -> None:
    t.execute("INSERT INTO search_todo (n) SELECT -n FROM generate_series(1, 600) n")
