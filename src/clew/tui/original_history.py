"""The history that a branch has copied: entries of its original, which come before its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel

from clew.record import Record
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.params import EntriesParams, Named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.wire.methods import RpcMethod
    from clew.wire.models import EntryShape, OriginShape, StateShape
    from clew.wire.params import Params

R = TypeVar("R", bound=BaseModel)


class Caller(Protocol):
    """Calls methods of the server."""

    async def call(self, method: RpcMethod[Any, R], params: Params) -> R: ...


class OriginalHistory(Record):
    """Entries of an original, and its state; numbered so that 0 is the last one copied."""

    entries: Sequence[EntryShape] = ()
    state: StateShape | None = None


async def read_original(
    server: Caller, origin: OriginShape, *, first: int, count: int
) -> OriginalHistory:
    """Return at most ``count`` entries before ``first``; none if the original was deleted."""
    last = origin.seq or 0
    wanted = EntriesParams(conversation=origin.id, before=first + last, limit=count)
    try:
        found = await server.call(methods.ENTRIES, wanted)
        state = (await server.call(methods.STATUS, Named(conversation=origin.id))).state
    except CallFailed as error:
        if error.code != ErrorCode.NOT_FOUND:
            raise
        return OriginalHistory()
    spans = [
        one.model_copy(update={"first": one.first - last, "last": one.last - last})
        for one in state.taken_back
    ]
    return OriginalHistory(
        entries=[one.model_copy(update={"seq": one.seq - last}) for one in found.items],
        state=state.model_copy(update={"taken_back": spans}),
    )
