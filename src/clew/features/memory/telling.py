"""Telling people what is proposed: an entry of the log beside the context, and a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.completion import is_attended
from clew.features.memory import proposals, writing
from clew.features.memory.memories import find_memory_of
from clew.features.memory.wording import format_proposals
from clew.store.transactions import chat_notices, conversations, inbox
from clew.store.transactions.turn_queries import find_last_done_turn

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, OwnerId
    from clew.core.route import RouteKey
    from clew.core.turn import Turn
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx


def is_untold(t: Tx, services: FeatureContext, conversation: ConversationId) -> bool:
    """Return whether there is something to tell in a conversation."""
    memory = find_memory_of(t, services, conversation)
    return memory is not None and bool(proposals.list_untold(t, memory))


def tell_proposals(
    t: Tx, services: FeatureContext, conversation: ConversationId, owner: OwnerId
) -> bool:
    """
    Tell what is proposed, once, to the person who has just said something in a conversation.

    :raises LeaseHeld: if somebody works on the conversation
    """
    known = conversations.get_conversation(t, conversation)
    turn = find_last_done_turn(t, conversation)
    if turn is None or known.adhoc or not is_attended(inbox.read_payloads(t, turn.id)):
        return False
    memory = find_memory_of(t, services, conversation)
    if memory is None:
        return False
    writing.lock_scope(t, memory)
    if not (found := proposals.list_untold(t, memory)):
        return False
    text = format_proposals(found)
    chat_notices.tell_people(
        t, conversation, text, name=found[-1].id, owner=owner, route=_find_route(t, turn)
    )
    proposals.mark_told(t, found)
    return True


def _find_route(t: Tx, turn: Turn) -> RouteKey | None:
    last = inbox.find_last_input(t, turn.id)
    return None if last is None else inbox.get_item(t, last).route
