"""Inbox items: accepted inputs on their way to an outcome."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core.double_text import DoubleText
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from clew.core.access import ChannelActor
    from clew.core.attachments import FetchedFile
    from clew.core.ids import ConversationId, InboxId, TurnId
    from clew.core.route import RouteKey


#: A row this far in the future was stored before the clock went back. Less is normal:
#: a transaction may see rows that a later one stored after it started.
CLOCK_SKEW = timedelta(minutes=1)


#: Commands that Clew queues by itself: to end the head session, to go on without what a
#: person has had forgotten, and with tools and instructions that are made anew.
END_COMMAND, FORGET_COMMAND, RELOAD_COMMAND = "end", "forget", "reload"
_OWN_COMMANDS = frozenset({END_COMMAND, FORGET_COMMAND, RELOAD_COMMAND})


class InboxKind(enum.Enum):
    MESSAGE = "message"
    COMMAND = "command"
    EXPIRY = "expiry"
    COMPLETION = "completion"


class InboxOutcome(enum.Enum):
    """Outcome of an input; each input has exactly one."""

    TURN = "turn"  #: its own turn
    MERGED = "merged"  #: began a turn together with others
    STEERED = "steered"  #: joined a running turn at a step
    EXECUTED = "executed"  #: a command that was carried out
    CANCELLED = "cancelled"
    REJECTED = "rejected"


class IdempotencyKey(Record):
    """A caller's idempotency key, and the hash of its request."""

    key: bytes
    body: bytes
    #: Whether the target belongs to the request, under any of its names; else ``body`` has it.
    holds_target: bool = False


class NewInput(Record):
    """Input before it is accepted."""

    id: InboxId
    kind: InboxKind = InboxKind.MESSAGE
    text: str
    double_text: DoubleText = DoubleText.QUEUE
    #: JSON: sender, attachments, arguments, reply address.
    payload: str = "{}"
    #: (channel, account, platform event id): the same event is accepted once.
    event: tuple[str, str, str] | None = None
    #: The id that a client gave the message: with the same text it is taken once.
    message_id: str | None = None
    #: Delay before it is consumed, unless released earlier: its files are being fetched.
    hold: timedelta = timedelta()
    #: The same key is accepted once; a repetition gets the first result.
    key: IdempotencyKey | None = None
    #: The files that the payload names.
    files: Sequence[FetchedFile] = ()
    #: The user on a channel, who needs access at the time of the commit.
    sender: ChannelActor | None = None
    #: The event of the message whose new text this is.
    replaces: tuple[str, str, str] | None = None
    #: It holds text that its writer did not write, such as a forwarded message or a file.
    untrusted: bool = False


class InboxItem(Record):
    """Accepted input."""

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
    #: Not consumed before this time: the collect window.
    due_at: datetime
    outcome: InboxOutcome | None = None
    turn_id: TurnId | None = None
    step: int | None = None
    note: str | None = None

    @property
    def is_internal(self) -> bool:
        """Return whether Clew queued it by itself: people did not ask for it and do not see it."""
        if self.kind is InboxKind.COMMAND:
            return self.text in _OWN_COMMANDS
        return self.kind in (InboxKind.EXPIRY, InboxKind.COMPLETION)

    def as_accepted(self) -> AcceptResult:
        """Return the item as if it had just been accepted again."""
        return AcceptResult(
            inbox_id=self.id,
            conversation_id=self.conversation_id,
            duplicate=True,
            position=0,
            outcome=self.outcome,
        )

    def is_due(self, now: datetime) -> bool:
        """Return whether the item may be processed now."""
        return self.due_at <= now or self.received_at > now + CLOCK_SKEW


class AcceptResult(Record):
    """Result of accepting an input."""

    inbox_id: InboxId
    conversation_id: ConversationId
    #: The platform had delivered this event before; nothing new was stored.
    duplicate: bool
    #: Number of open items ahead of it.
    position: int
    outcome: InboxOutcome | None = None
    #: The stored answer to the first request with its key, and its HTTP status.
    answer: str | None = None
    status: int | None = None
