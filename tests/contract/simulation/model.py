"""The reference model: what a conversation must look like, kept in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.entry import EntryKind
from clew.core.turn import TurnState

if TYPE_CHECKING:
    from clew.core.double_text import DoubleText
    from clew.core.entry import NewEntry
    from clew.core.ids import ApprovalId, ConversationId, InboxId, OwnerId, SessionId, TurnId
    from clew.core.inbox import InboxItem, InboxKind
    from clew.core.lease import Lease
    from clew.core.turn import StopRequest

#: A context: its messages, as JSON.
Messages = tuple[str, ...]


@dataclass(kw_only=True, slots=True)
class Item:
    """An open input."""

    id: InboxId
    kind: InboxKind
    rule: DoubleText
    text: str


@dataclass(kw_only=True, slots=True)
class Stretch:
    """A session: what it started from, and after which seq."""

    id: SessionId
    base: Messages
    opened_seq: int


@dataclass(kw_only=True, slots=True)
class Doing:
    """An unfinished turn."""

    id: TurnId
    state: TurnState = TurnState.RUNNING
    stop: StopRequest | None = None
    steps: int = 0
    #: Call ids of the open batch: ``None`` (nothing stored), "intended" or "settled".
    calls: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    approvals: dict[str, ApprovalId] = field(default_factory=dict[str, "ApprovalId"])
    #: When each question expires, in milliseconds.
    deadlines: dict[ApprovalId, int] = field(default_factory=dict["ApprovalId", int])


@dataclass(kw_only=True, slots=True)
class Thread:
    """A conversation."""

    id: ConversationId
    log: list[NewEntry] = field(default_factory=list["NewEntry"])
    sessions: list[Stretch] = field(default_factory=list["Stretch"])
    #: The context right after each seq; the first is what the conversation began with.
    after: list[Messages] = field(default_factory=list[Messages])
    context: Messages = ()
    open: bool = True
    lease: Lease | None = None
    turn: Doing | None = None
    items: dict[InboxId, Item] = field(default_factory=dict["InboxId", Item])
    #: The part of the log that was compared with the store.
    compared: int = 0

    @property
    def head(self) -> Stretch:
        return self.sessions[-1]

    @property
    def busy(self) -> bool:
        return self.turn is not None or bool(self.items)

    def said(self, drafts: list[NewEntry]) -> None:
        for draft in drafts:
            self.log.append(draft)
            if draft.kind is EntryKind.MESSAGE:
                self.context += (draft.message,)
            self.after.append(self.context)

    def opened(self, session: SessionId, context: Messages) -> None:
        self.context, self.open = context, True
        self.sessions.append(Stretch(id=session, base=context, opened_seq=len(self.log)))

    def rewound(self, session: SessionId, context: Messages) -> None:
        """Messages removed from the context at this seq do not return."""
        self.opened(session, context)
        self.after[-1] = context

    def messages(self, *, first: int, last: int) -> Messages:
        """The messages of ``first..last``."""
        found = self.log[first - 1 : last]
        return tuple(draft.message for draft in found if draft.kind is EntryKind.MESSAGE)

    def boundaries(self) -> list[int]:
        """Each seq with no unanswered tool call; 0 is one."""
        found, asked = [0], False
        for seq, draft in enumerate(self.log, start=1):
            if draft.kind is EntryKind.MESSAGE:
                asked = bool(draft.calls)
            if not asked:
                found.append(seq)
        return found

    @property
    def batch_open(self) -> bool:
        return self.turn is not None and bool(self.turn.calls)


@dataclass(kw_only=True, slots=True)
class Run:
    """State that an owner keeps in memory while it works on a conversation."""

    owner: OwnerId
    thread: Thread
    lease: Lease
    turn: TurnId | None
    #: A command that it carries out.
    item: InboxItem | None
    session: SessionId
