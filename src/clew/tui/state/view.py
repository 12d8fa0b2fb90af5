"""View: immutable state of everything that the conversation screen shows."""

from __future__ import annotations

import enum
from dataclasses import field
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from clew.wire.models import ApprovalShape, ConversationShape, StateShape, UsageShape
    from clew.wire.results import AgentShape


class BlockKind(enum.Enum):
    """Kind of a block."""

    USER = "user"
    ANSWER = "answer"
    THINKING = "thinking"
    TOOL = "tool"
    NOTE = "note"  #: something that happened: a notice, a failure


class ToolProgress(enum.Enum):
    """Progress of a tool call."""

    ASKED = "asked"  #: not started, or waiting for approval
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    DENIED = "denied"  #: denied by a person or by a rule


class ToolCallView(Record):
    """Tool call."""

    call: str
    name: str
    #: JSON.
    args: str
    progress: ToolProgress = ToolProgress.ASKED
    #: Its result, as text.
    result: str = ""


class ToolCallResult(Record):
    """Result of a tool call."""

    call: str
    text: str
    progress: ToolProgress


class TurnTotals(Record):
    """Totals of a turn, over all its steps."""

    model: str
    #: Tokens that the model wrote.
    tokens: int
    #: From the message to the answer; ``None`` if the message is not loaded.
    seconds: float | None


class Block(Record):
    """Displayed unit of a conversation."""

    #: Unique and stable while it is shown.
    key: str
    kind: BlockKind
    #: The entry that it is from.
    seq: int
    text: str = ""
    tool: ToolCallView | None = None
    #: The session that its entry was appended to.
    session: str = ""
    #: Rewound: no longer a part of the conversation.
    taken: bool = False
    turn: str = ""
    #: When its entry was stored, as text in UTC; "" while it is streamed.
    at: str = ""
    #: Tokens that its response took; of several blocks of one response the first has them.
    tokens: int = 0
    #: At the end of an answer.
    totals: TurnTotals | None = None


class LiveResponse(Record):
    """Response in progress; void after the next entry or the end of the turn."""

    turn: str = ""
    text: str = ""
    thinking: str = ""


class PendingText(Record):
    """Text that was sent and that the server has not confirmed yet."""

    #: Unique and stable until it is confirmed.
    number: int
    text: str


class LinkState(enum.Enum):
    """State of the connection to the server."""

    CONNECTING = "connecting"
    UP = "up"
    LOST = "lost"


class ViewState(Record):
    """Displayed conversation."""

    link: LinkState = LinkState.CONNECTING
    #: The reason for the disconnection, or the last error; a sentence.
    trouble: str = ""
    #: ``None`` until it is open.
    conversation: ConversationShape | None = None
    state: StateShape | None = None
    usage: UsageShape | None = None
    #: The agent; ``None`` until it is known.
    agent: AgentShape | None = None
    blocks: tuple[Block, ...] = ()
    #: Approvals that were answered here, delivered or not.
    answered: frozenset[str] = frozenset()
    #: Texts that are being sent, oldest first.
    sending: tuple[PendingText, ...] = ()
    #: Commands in the background, the latest first.
    commands: tuple[str, ...] = ()
    live: LiveResponse = field(default_factory=LiveResponse)
    #: Results whose calls are not loaded.
    strays: tuple[ToolCallResult, ...] = ()
    #: The first loaded seq; ``start`` if nothing precedes it.
    first: int = 1
    #: The last received seq.
    seq: int = 0
    #: An entry is missing: subscribe again after ``seq``.
    gap: bool = False
    #: The conversation was deleted.
    gone: bool = False

    def shows(self, conversation: str) -> bool:
        """Return whether a conversation (by id) is the displayed one."""
        return self.conversation is not None and self.conversation.id == conversation

    @property
    def start(self) -> int:
        """
        Return the first seq: 1, or less in a branch.

        The entries of the original come before those of the branch: 0 is the last one copied.
        """
        origin = None if self.conversation is None else self.conversation.origin
        return 1 if origin is None or origin.seq is None else 1 - origin.seq

    @property
    def is_running(self) -> bool:
        return self.state is not None and self.state.turn is not None

    @property
    def head(self) -> str:
        """Return the head session; "" before the conversation is open."""
        return self.state.head_session if self.state else ""

    @property
    def approvals(self) -> tuple[ApprovalShape, ...]:
        """Return the approvals that are not answered here yet."""
        waiting = self.state.approvals if self.state else []
        return tuple(one for one in waiting if one.id not in self.answered)

    @property
    def title(self) -> str:
        """Return the display name: the title, else a route's name, else the id."""
        if self.conversation is None:
            return ""
        titled = self.state.title if self.state else self.conversation.title
        names = [route.rpartition(":")[2] for route in self.conversation.routes]
        return titled or next(iter(names), "") or self.conversation.id
