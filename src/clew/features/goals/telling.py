"""What people are told of a goal: an entry of the log, and a message to its chat."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clew.core.channel_events import OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.entry import EntryKind, NewEntry
from clew.core.ids import DeliveryId, EntryId
from clew.engine.turn_log import NOTICE_FORMAT
from clew.features.goals import goals
from clew.features.goals.wording import format_notice
from clew.store.transactions import entries, leases
from clew.store.transactions.deliveries import deliver_to_chat
from clew.store.transactions.sessions import get_head

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, OwnerId
    from clew.features.goals.goals import Goal
    from clew.store.contract import Tx


def tell_people(t: Tx, goal: Goal, *, owner: OwnerId) -> None:
    """
    Tell of the state of a locked goal, once, in its conversation and in its chat.

    :raises LeaseHeld: if somebody works on the conversation
    """
    text = format_notice(goal)
    told = goals.save_goal(t, replace(goal, told=1))
    name = f"{told.id}_{told.version}"
    _append_notice(t, goal.conversation, EntryId(f"ent_{name}"), text, owner)
    deliver_to_chat(
        t,
        goal.conversation,
        goal.route,
        OutboundMessage(text=text, markup=False),
        id=DeliveryId(f"dlv_{name}"),
        kind=DeliveryKind.NOTICE,
    )


def _append_notice(
    t: Tx, conversation: ConversationId, entry: EntryId, text: str, owner: OwnerId
) -> None:
    """Append a notice, outside of the context; a conversation that is closed stays closed."""
    session = get_head(t, conversation)
    if not session.is_open:
        return
    notice = NewEntry(
        id=entry,
        kind=EntryKind.EVENT,
        role=None,
        text=text,
        format=NOTICE_FORMAT,
        message="null",
    )
    lease = leases.acquire_lease(t, conversation, owner=owner).lease
    entries.append_entries(t, lease, session.id, [notice])
    leases.release_lease(t, lease)
