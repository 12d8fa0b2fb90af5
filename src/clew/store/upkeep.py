"""What whoever looks after a store calls: work in slices, so that no write waits for it long."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from clew.errors import SearchNotReady
from clew.store import search, space
from clew.store.transactions.deletion import delete_slice

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.store.contract import Store
    from clew.store.search import SearchPage


async def find(
    store: Store, query: str, *, viewer: Scope, limit: int = 20, cursor: str | None = None
) -> SearchPage:
    """
    Search; an index that turns out to be damaged will be made anew by the next ``catch_up``.

    :raises UsageError: if there is nothing in the query to look for, or the cursor is none of ours
    :raises SearchNotReady: if the index cannot answer now
    """
    try:
        return await store.read(search.search, query, viewer=viewer, limit=limit, cursor=cursor)
    except SearchNotReady as error:
        if error.damaged:
            await store.write(search.condemn)
        raise


async def catch_up(store: Store, *, slices: int | None = None) -> None:
    """
    Put messages into the search index until all are in it, or for so many ``slices``.

    Writes nothing where there is nothing to do. A damaged index is made anew, once.
    """
    try:
        await _index(store, slices)
    except SearchNotReady:
        await store.write(search.condemn)
        await store.write(search.begin_anew)
        for name in await store.read(search.remains):
            with suppress(SearchNotReady):
                await store.write(search.discard, name)
        await _index(store, slices)


async def _index(store: Store, slices: int | None) -> None:
    for done in count():
        if done == slices or not await store.read(search.is_behind):
            return
        await store.write(search.index_slice)


async def shrink(store: Store, *, slices: int = 50) -> int:
    """Give back what deletions have left free in the file, if it is much; how many pages."""
    given = 0
    for _ in range(slices):
        if not await store.read(space.is_wasteful):
            break
        given += await store.write(space.give_back)
    return given


async def erase(store: Store, conversation: ConversationId) -> None:
    """Remove the rows of a conversation that was marked as deleted, however the index is."""
    try:
        await _delete(store, conversation)
    except SearchNotReady:
        await store.write(search.condemn)
        await _delete(store, conversation)


async def _delete(store: Store, conversation: ConversationId) -> None:
    while await store.write(delete_slice, conversation):
        pass
