"""Where a conversation stands: what it is doing, and what waits in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.approval import Approval
    from clew.core.ids import ConversationId, SessionId, TurnId
    from clew.core.inbox import InboxItem
    from clew.core.taken_back import Span
    from clew.core.turn import TurnState


@dataclass(frozen=True, kw_only=True, slots=True)
class Unfinished:
    """A turn that is not done."""

    id: TurnId
    state: TurnState
    #: It was asked to stop.
    stopping: bool
    started_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Read in one moment; two that are equal tell people the same."""

    conversation: ConversationId
    title: str | None
    head: SessionId
    #: The head has ended; the next message opens its successor.
    closed: bool
    #: The model that a person chose; ``None`` for the one of the settings.
    model: str | None
    turn: Unfinished | None
    #: The inputs that wait, in order.
    queue: tuple[InboxItem, ...]
    #: The questions that wait for a person's word, oldest first.
    approvals: tuple[Approval, ...]
    #: Entries that rewinds have taken out of it.
    taken_back: tuple[Span, ...] = ()
