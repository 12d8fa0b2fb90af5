"""Periodic maintenance of a store, in batches, so that no write waits long."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from clew.errors import SearchNotReady
from clew.store import search, vacuum
from clew.store.transactions.deletion import delete_slice

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.store.contract import Store
    from clew.store.search import SearchPage


async def run_search(
    store: Store, query: str, *, viewer: Scope, limit: int = 20, cursor: str | None = None
) -> SearchPage:
    """
    Search; mark a damaged index, so that the next ``update_index`` rebuilds it.

    :raises UsageError: if the query contains nothing to search for, or the cursor is
        invalid
    :raises SearchNotReady: if the index cannot be used now
    """
    try:
        return await store.read(
            search.search_messages, query, viewer=viewer, limit=limit, cursor=cursor
        )
    except SearchNotReady as error:
        if error.damaged:
            await store.write(search.mark_damaged)
        raise


async def update_index(store: Store, *, slices: int | None = None) -> None:
    """
    Index messages until none is left, or for at most ``slices`` batches.

    Writes nothing if there is nothing to do. A damaged index is rebuilt, once.
    """
    try:
        await _run_index_batches(store, slices)
    except SearchNotReady:
        await store.write(search.mark_damaged)
        await store.write(search.start_rebuild)
        for name in await store.read(search.find_leftover_tables):
            with suppress(SearchNotReady):
                await store.write(search.drop_leftover_table, name)
        await _run_index_batches(store, slices)


async def _run_index_batches(store: Store, slices: int | None) -> None:
    for done in count():
        if done == slices or not await store.read(search.needs_indexing):
            return
        await store.write(search.index_batch)


async def release_free_space(store: Store, *, slices: int = 50) -> int:
    """Release the free space in the file if there is much; return how many pages."""
    given = 0
    for _ in range(slices):
        if not await store.read(vacuum.has_reclaimable_space):
            break
        given += await store.write(vacuum.release_space)
    return given


async def erase_conversation(store: Store, conversation: ConversationId) -> None:
    """Remove the rows of a conversation marked as deleted, even if the index is damaged."""
    try:
        await _delete_in_batches(store, conversation)
    except SearchNotReady:
        await store.write(search.mark_damaged)
        await _delete_in_batches(store, conversation)


async def _delete_in_batches(store: Store, conversation: ConversationId) -> None:
    while await store.write(delete_slice, conversation):
        pass
