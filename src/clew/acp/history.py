"""The history of a conversation that a branch has copied: entries of its originals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.rewound import is_rewound
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.params import EntriesParams, Named

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clew.tui.client import RpcClient
    from clew.wire.models import EntryShape, OriginShape


async def iter_copied_entries(
    client: RpcClient, origin: OriginShape | None
) -> AsyncIterator[EntryShape]:
    """Yield what a branch was made from, oldest first; nothing of a deleted original."""
    if origin is None:
        return
    try:
        found = await client.call(methods.STATUS, Named(conversation=origin.id))
    except CallFailed as error:
        if error.code != ErrorCode.NOT_FOUND:
            raise
        return
    async for entry in iter_copied_entries(client, found.conversation.origin):
        yield entry
    last = found.conversation.entries if origin.seq is None else origin.seq
    async for entry in _iter_entries(client, origin.id, last=last):
        if not is_rewound(entry.seq, found.state.taken_back):
            yield entry


async def _iter_entries(
    client: RpcClient, conversation: str, *, last: int
) -> AsyncIterator[EntryShape]:
    after: int | None = 0
    while after is not None and after < last:
        page = await client.call(
            methods.ENTRIES, EntriesParams(conversation=conversation, after=after)
        )
        for entry in page.items:
            if entry.seq <= last:
                yield entry
        after = None if page.next is None else int(page.next)
