"""The view: everything that is on the screen of a conversation, frozen."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.wire.records import ApprovalShape, ConversationShape, StateShape, UsageShape
    from clew.wire.results import AgentShape


class Kind(enum.Enum):
    """What a block is."""

    USER = "user"
    ANSWER = "answer"
    THINKING = "thinking"
    TOOL = "tool"
    NOTE = "note"  #: something that happened: a notice, a failure


class Progress(enum.Enum):
    """How far a tool call is."""

    ASKED = "asked"  #: not begun, or waiting for a person's word
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    DENIED = "denied"  #: a person, or their rule, did not allow it


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A call of a tool."""

    call: str
    name: str
    #: JSON.
    args: str
    progress: Progress = Progress.ASKED
    #: What it gave back, as text.
    result: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a tool call gave back."""

    call: str
    text: str
    progress: Progress


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """What an answer took, all steps of its turn together."""

    model: str
    #: Tokens that the model wrote.
    tokens: int
    #: From the message to the answer; ``None`` where the beginning is not loaded.
    seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One thing that was said or done."""

    #: The same for as long as it is shown, and of nothing else.
    key: str
    kind: Kind
    #: The entry that it is from.
    seq: int
    text: str = ""
    tool: Tool | None = None
    #: The session that its entry was appended to.
    session: str = ""
    #: Somebody went back over it: it is no part of the conversation any more.
    taken: bool = False
    turn: str = ""
    #: When its entry was stored, as text in UTC; "" while it is being made.
    at: str = ""
    #: Tokens that its response took; of several blocks of one response the first has them.
    tokens: int = 0
    #: At the end of an answer.
    totals: Totals | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Live:
    """The response that is being made; void once an entry or the end of the turn comes."""

    turn: str = ""
    text: str = ""
    thinking: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sending:
    """A text that was sent, and that the server has not confirmed yet."""

    #: The same for as long as it is on its way, and of nothing else.
    number: int
    text: str


class Link(enum.Enum):
    """How it stands with the server."""

    CONNECTING = "connecting"
    UP = "up"
    LOST = "lost"


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """A conversation as it is shown."""

    link: Link = Link.CONNECTING
    #: Why it is not up, or what went wrong last; a sentence.
    trouble: str = ""
    #: ``None`` until it is open.
    conversation: ConversationShape | None = None
    state: StateShape | None = None
    usage: UsageShape | None = None
    #: Who answers; ``None`` until it is known.
    agent: AgentShape | None = None
    blocks: tuple[Block, ...] = ()
    #: Questions whose answers are on their way, or have come there.
    answered: frozenset[str] = frozenset()
    #: Texts on their way to the server, oldest first.
    sending: tuple[Sending, ...] = ()
    live: Live = field(default_factory=Live)
    #: Results whose calls are not loaded.
    strays: tuple[Result, ...] = ()
    #: The first entry that is loaded; 1 when there is nothing before.
    first: int = 1
    #: The last entry that was told.
    seq: int = 0
    #: An entry is missing: subscribe again after ``seq``.
    gap: bool = False
    #: The conversation was deleted.
    gone: bool = False

    @property
    def is_running(self) -> bool:
        return self.state is not None and self.state.turn is not None

    @property
    def head(self) -> str:
        """The session in which it goes on; "" before it is open."""
        return self.state.head_session if self.state else ""

    @property
    def approvals(self) -> tuple[ApprovalShape, ...]:
        """The questions that nobody here has answered yet."""
        waiting = self.state.approvals if self.state else []
        return tuple(one for one in waiting if one.id not in self.answered)

    @property
    def title(self) -> str:
        """How people call it: its title, the name that leads there, or its id."""
        if self.conversation is None:
            return ""
        titled = self.state.title if self.state else self.conversation.title
        names = [route.rpartition(":")[2] for route in self.conversation.routes]
        return titled or next(iter(names), "") or self.conversation.id
