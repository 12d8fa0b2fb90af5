"""Protocol of memory providers: what is remembered of people and chats, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.scope import Scope
    from clew.plugin.turn_context import TurnContext


class Memory(Record):
    """One fact that is remembered."""

    #: The same fact keeps it.
    id: str
    text: str
    #: Whose it is: a group never sees those of a person.
    scope: Scope


class MemoryProvider(Protocol):
    """
    A place that keeps memories, beside the store or in another service.

    Each method is given the turn, whose ``scope`` bounds what may be seen and changed, and
    whose ``call_key`` identifies a write: one that is repeated after a crash must not be
    kept twice. One that raises, or takes longer than ten seconds, is left out of the answer.
    """

    async def remember(self, context: TurnContext, text: str) -> Memory:
        """Keep a fact in the scope of the turn; the same call key keeps it once."""
        ...

    async def recall(self, context: TurnContext, query: str, *, limit: int) -> Sequence[Memory]:
        """Return at most ``limit`` memories of the turn's scope, the best match first."""
        ...

    async def forget(self, context: TurnContext, memory: str) -> bool:
        """Delete a memory of the turn's scope; ``False`` if there is none with this id."""
        ...
