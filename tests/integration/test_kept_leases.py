"""Leases that are renewed while a block runs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clew.core.ids import ConversationId, OwnerId, new_session_id
from clew.core.scope import LOCAL
from clew.engine import lease_renewal
from clew.engine.lease_renewal import keep_lease
from clew.errors import LeaseLost
from clew.store.opening import open_store
from clew.store.transactions import leases
from clew.store.transactions.conversations import open_conversation
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.core.lease import Lease
    from clew.store.contract import Store

C1 = ConversationId("cnv_1")


async def hold(store: Store, lease: Lease) -> None:
    """Stay in a block that keeps a lease, until it was tried to renew it."""
    async with keep_lease(store, lease, duration=timedelta(seconds=0.2)):
        [renewing] = [task for task in asyncio.all_tasks() if task.get_name() == "lease"]
        await wait_until(renewing.done)


async def test_a_block_that_has_released_its_lease_ends_and_one_that_lost_it_is_ended(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_renewal, "_SAFETY_MARGIN", timedelta(minutes=-1))
    async with await open_store(store_url, home=tmp_path) as store:
        await store.write(open_conversation, C1, scope=LOCAL, session_ids=new_session_id)
        taken = await store.write(leases.acquire_lease, C1, owner=OwnerId("own_1"))
        # As the commit does that stores the outcome of a turn.
        await store.write(leases.release_lease, taken.lease)
        await hold(store, taken.lease)
        await store.write(leases.acquire_lease, C1, owner=OwnerId("own_2"))
        with pytest.raises(LeaseLost):
            await hold(store, taken.lease)
