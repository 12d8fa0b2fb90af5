"""
Events: what those who follow a conversation are told, in order.

Entries are the truth and come with their seq; everything else is provisional and without one. Text
that was streamed is confirmed by the entry that carries it, or taken back by ``Retracted``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId, InboxId, SessionId, TurnId
    from clew.core.inbox import InboxOutcome
    from clew.core.standing import Standing
    from clew.core.turn import Turn


class DeltaKind(enum.Enum):
    TEXT = "text"
    THINKING = "thinking"


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryAppended:
    """An entry is stored."""

    entry: Entry


@dataclass(frozen=True, kw_only=True, slots=True)
class Delta:
    """A piece of the response that is being made."""

    conversation: ConversationId
    turn: TurnId
    #: The seq of the newest entry when it came: an entry of a turn with a higher one confirms it.
    after: int
    kind: DeltaKind
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The text of the response that is being made, so far: for those who come late."""

    conversation: ConversationId
    turn: TurnId
    after: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Retracted:
    """The pieces since the last entry are void: the request is made again."""

    conversation: ConversationId
    turn: TurnId
    after: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCalled:
    """A tool call is about to run, or was answered (``status``)."""

    conversation: ConversationId
    turn: TurnId
    call_id: str
    tool: str
    args: str
    status: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnBegun:
    """An owner works on the turn, for the first time or again."""

    turn: Turn
    session: SessionId


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnClosed:
    """The turn has its outcome; every entry of it came before this."""

    turn: Turn


@dataclass(frozen=True, kw_only=True, slots=True)
class StandingChanged:
    """
    What the conversation is doing, or what waits in it, is something else now.

    All that was stored when it was read is told before it; pieces of an answer may come later.
    """

    standing: Standing


Event = (
    EntryAppended
    | Delta
    | Snapshot
    | Retracted
    | ToolCalled
    | TurnBegun
    | TurnClosed
    | StandingChanged
)


@dataclass(frozen=True, kw_only=True, slots=True)
class InputEnded:
    """What became of one input: the last event of those who follow it."""

    inbox_id: InboxId
    conversation: ConversationId
    #: The head session when it ended.
    session: SessionId
    outcome: InboxOutcome
    #: The turn that answered it, done; ``None`` for a command, a cancelled or a rejected input.
    turn: Turn | None
    #: What the person is told: the answer, or the text of the failure; "" where silence is right.
    text: str
    #: Why it was cancelled or rejected, or what the command answered.
    note: str | None = None
    #: What else the person is told of the turn: that another model was asked, for example.
    notices: tuple[str, ...] = ()
    #: The text ends in the middle: the model had reached its limit of output.
    cut: bool = False
