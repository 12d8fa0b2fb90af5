"""An import leaves time to the others that have the store open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.core.ids import OwnerId
from clew.engine import import_pace
from clew.engine.import_pace import ImportPace
from clew.store.opening import open_store
from clew.store.transactions import owners

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from clew.store.contract import Store

ME, GATEWAY = OwnerId("own_1"), OwnerId("own_2")


async def test_an_import_rests_only_while_another_process_has_the_store_open(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []

    async def rest(seconds: float) -> None:
        rests.append(seconds)

    monkeypatch.setattr(import_pace, "_LOOK_EVERY", 0)
    monkeypatch.setattr(import_pace, "_REST_EVERY", 0)
    async with await open_store(store_url, home=tmp_path) as store:
        pace = ImportPace(store, ME)
        monkeypatch.setattr(asyncio, "sleep", rest)
        await _open(store, ME)
        await pace.rest_if_shared()
        assert rests == []
        await _open(store, GATEWAY)
        await pace.rest_if_shared()
        await pace.rest_if_shared()
        assert len(rests) == 2
        await store.write(owners.mark_owner_ended, GATEWAY)
        await pace.rest_if_shared()
        assert len(rests) == 2


async def _open(store: Store, owner: OwnerId) -> None:
    await store.register_owner(owner)
    await store.write(owners.register_owner, owner, host="h", pid=1, role="test", version="0")
