"""Orders: inputs of programs, which wait for the answer to each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.events import TurnBegun
from clew.store.transactions import conversations, inbox, usage
from clew.store.transactions.usage import Used

if TYPE_CHECKING:
    from clew.core.ids import InboxId
    from clew.core.turn import Turn
    from clew.store.contract import Store, Tx


class Orders:
    """What a program may ask about the inputs that it gave."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begun(self, inbox_id: InboxId) -> TurnBegun | None:
        """The turn that answers an input, and the session it is in; ``None`` before it began."""
        return await self._store.read(_begun, inbox_id)

    async def used(self, turn: Turn | None) -> Used:
        """What the model requests of a turn cost."""
        if turn is None:
            return Used()
        return await self._store.read(usage.usage_of, turn.conversation_id, turn=turn.id)


def _begun(t: Tx, inbox_id: InboxId) -> TurnBegun | None:
    turn = inbox.turn_of(t, inbox_id)
    if turn is None:
        return None
    session = conversations.get_conversation(t, turn.conversation_id).head
    return TurnBegun(turn=turn, session=session)
