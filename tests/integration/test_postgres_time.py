"""The time of a transaction on PostgreSQL."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from clew.store.postgres import open_postgres

if TYPE_CHECKING:
    from clew.store.contract import Tx


def _prepare(t: Tx) -> None:
    t.execute("CREATE TABLE thing (n INTEGER)")
    t.execute("INSERT INTO thing (n) VALUES (1)")


async def test_a_transaction_that_waited_for_a_lock_has_a_later_time(
    postgres_url: str,
) -> None:
    locked, waiting = threading.Event(), threading.Event()

    def hold(t: Tx) -> int:
        t.fetch_one("SELECT n FROM thing @LOCK")
        locked.set()
        waiting.wait(5)
        threading.Event().wait(0.05)
        # The database's own clock, at the very end.
        row = t.fetch_one("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        assert row is not None
        return row[0]

    def wait(t: Tx) -> int:
        waiting.set()
        t.fetch_one("SELECT n FROM thing @LOCK")
        return t.now

    async with await open_postgres(postgres_url) as store:
        await store.write(_prepare)
        holding = asyncio.create_task(store.write(hold))
        await asyncio.to_thread(locked.wait, 5)
        waited = await store.write(wait)
        assert await holding <= waited
