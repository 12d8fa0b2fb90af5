"""Inbox items: accepted inputs on their way to an outcome."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.double_text import DoubleText
    from clew.core.ids import ConversationId, InboxId, TurnId
    from clew.core.route import RouteKey


#: What was stored so much later than now was stored before the clock went back. Shorter is nothing:
#: a transaction that began before another one sees what that one stored after it.
CLOCK_SKEW = timedelta(minutes=1)


class InboxKind(enum.Enum):
    MESSAGE = "message"
    COMMAND = "command"
    EXPIRY = "expiry"
    COMPLETION = "completion"


class InboxOutcome(enum.Enum):
    """What became of an input: exactly one of these, once."""

    TURN = "turn"  #: a turn of its own
    MERGED = "merged"  #: began a turn together with others
    STEERED = "steered"  #: joined a running turn at a step
    EXECUTED = "executed"  #: a command that was carried out
    CANCELLED = "cancelled"
    REJECTED = "rejected"


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """What a front hands in."""

    id: InboxId
    kind: InboxKind = InboxKind.MESSAGE
    text: str
    double_text: DoubleText
    #: JSON: sender, attachments, arguments, reply address.
    payload: str = "{}"
    #: (channel, account, platform event id): the same event is accepted once.
    event: tuple[str, str, str] | None = None
    #: Not consumed for so long, unless it is released before: its files are being fetched.
    hold: timedelta = timedelta()


@dataclass(frozen=True, kw_only=True, slots=True)
class InboxItem:
    """An accepted input."""

    #: The order of acceptance.
    n: int
    id: InboxId
    conversation_id: ConversationId
    route: RouteKey | None
    kind: InboxKind
    text: str
    payload: str
    double_text: DoubleText
    received_at: datetime
    #: Not consumed before: the collect window.
    due_at: datetime
    outcome: InboxOutcome | None = None
    turn_id: TurnId | None = None
    step: int | None = None
    note: str | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether it may be taken up now."""
        return self.due_at <= now or self.received_at > now + CLOCK_SKEW


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """The answer to an input that is stored."""

    inbox_id: InboxId
    conversation_id: ConversationId
    #: The platform had delivered this event before; nothing new was stored.
    duplicate: bool
    #: How many open items stand before it.
    position: int
    outcome: InboxOutcome | None = field(default=None)
