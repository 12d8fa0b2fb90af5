"""Which session continued which, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.tui.screens.picker import Choice, Narrowing
from clew.tui.state.words import reason

if TYPE_CHECKING:
    from clew.wire.records import ConversationShape, SessionShape


def lineage(conversation: ConversationShape) -> Narrowing:
    """The sessions of a conversation from the first to the head."""
    origin = conversation.origin
    came = f", a branch of {origin.id} at entry {origin.seq}" if origin else ""
    return Narrowing(
        [_choice(one, conversation) for one in conversation.sessions],
        heading=f"Sessions of this conversation{came}",
    )


def _choice(one: SessionShape, conversation: ConversationShape) -> Choice:
    is_head = one.id == conversation.head_session
    known = [each.id for each in conversation.sessions]
    after = f" after {known.index(one.predecessor) + 1}" if one.predecessor in known else ""
    ended = f"; ended: {reason(one.end_reason)}" if one.end_reason else ""
    begun = one.opened_at[:16].replace("T", " ")
    return Choice(
        key=one.id,
        text=f"{known.index(one.id) + 1}  {begun}{after}",
        more=f"{reason(one.opened_by)}  {one.messages} messages{ended}",
        marked=is_head,
    )
