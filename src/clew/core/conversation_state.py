"""Current state of a conversation: its turn, its queue and its approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.approval import Approval
    from clew.core.ids import ConversationId, SessionId, TurnId
    from clew.core.inbox import InboxItem
    from clew.core.rewound import RewoundSpan
    from clew.core.turn import TurnState


class ActiveTurn(Record):
    """Turn that is not done."""

    id: TurnId
    state: TurnState
    #: It was asked to stop.
    stopping: bool
    started_at: datetime


class ConversationState(Record):
    """Snapshot of a conversation; equal ones look the same to people."""

    conversation: ConversationId
    title: str | None
    head: SessionId
    #: The head has ended; the next message opens its successor.
    closed: bool
    #: The model that a person chose; ``None`` for the one of the settings.
    model: str | None
    turn: ActiveTurn | None
    #: The inputs that wait, in order.
    queue: tuple[InboxItem, ...]
    #: Tool calls that wait for approval, oldest first.
    approvals: tuple[Approval, ...]
    #: Entries removed by rewinds.
    taken_back: tuple[RewoundSpan, ...] = ()
