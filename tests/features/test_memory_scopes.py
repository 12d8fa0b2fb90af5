"""No fact reaches another scope, on any of the ways to a model or a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.features.memory_scopes import WAYS, walk_scopes

if TYPE_CHECKING:
    from pathlib import Path


async def test_no_fact_of_a_person_or_chat_reaches_another_on_any_way(
    tmp_path: Path, store_url: str
) -> None:
    done = await walk_scopes(
        tmp_path, store_url, platforms=("telegram",), people=2, everywhere=False
    )
    assert not done.leaks
    assert not done.lost, "what is not told to its own proves nothing"
    assert (done.scopes, done.routes) == (5, 7)
    assert all(done.searched[way] >= done.scopes for way in WAYS)
