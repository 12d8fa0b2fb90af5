"""
Events of a conversation, in the order in which subscribers receive them.

Entries are authoritative and carry their seq; all other events are provisional and carry
none. Streamed text is confirmed by the entry that contains it, or withdrawn by
``Retracted``.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from clew.core.conversation_state import ConversationState
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId, InboxId, SessionId, TurnId
    from clew.core.inbox import InboxOutcome
    from clew.core.turn import Turn


class DeltaKind(enum.Enum):
    TEXT = "text"
    THINKING = "thinking"


class EntryAppended(Record):
    """Stored entry."""

    entry: Entry


class Delta(Record):
    """Fragment of the response in progress."""

    conversation: ConversationId
    turn: TurnId
    #: The newest seq when it was sent: an entry of the turn with a higher seq confirms it.
    after: int
    kind: DeltaKind
    text: str


class Snapshot(Record):
    """Text so far of the response in progress, for late subscribers."""

    conversation: ConversationId
    turn: TurnId
    after: int
    text: str


class Retracted(Record):
    """Withdrawal of the fragments since the last entry: the request is repeated."""

    conversation: ConversationId
    turn: TurnId
    after: int
    reason: str


class ToolCalled(Record):
    """Start of a tool call, or its result (``status``)."""

    conversation: ConversationId
    turn: TurnId
    call_id: str
    tool: str
    args: str
    status: str | None = None


class TurnStarted(Record):
    """Start or resumption of a turn by an owner."""

    turn: Turn
    session: SessionId


class TurnFinished(Record):
    """End of a turn, after all of its entries."""

    turn: Turn


class ConversationStateChanged(Record):
    """
    Change of a conversation's state: its activity or its queue.

    Everything stored when the state was read is published before it; deltas may follow.
    """

    standing: ConversationState


ConversationEvent = (
    EntryAppended
    | Delta
    | Snapshot
    | Retracted
    | ToolCalled
    | TurnStarted
    | TurnFinished
    | ConversationStateChanged
)


class InputCompleted(Record):
    """Outcome of one input: the last event for those who follow it."""

    inbox_id: InboxId
    conversation: ConversationId
    #: The head session when it ended.
    session: SessionId
    outcome: InboxOutcome
    #: The turn that answered it, done; ``None`` for a command, a cancelled or a rejected input.
    turn: Turn | None
    #: Text for the person: the answer or the failure; "" if there is nothing to say.
    text: str
    #: The reason for its cancellation or rejection, or the command's reply.
    note: str | None = None
    #: Further notices about the turn, such as a switch to another model.
    notices: tuple[str, ...] = ()
    #: The text is truncated: the model reached its output limit.
    cut: bool = False
