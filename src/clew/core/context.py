"""Contexts as people look at them: what the model is sent, and what a compaction would leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.base import Base
    from clew.core.ids import ConversationId, SessionId
    from clew.core.session import Session

#: Who speaks in a message that stands for others.
SUMMARY = "summary"
#: Why a compaction did nothing.
NOTHING = "there is nothing to compact yet"


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One message of a context."""

    #: Its place in the log; ``None`` for a literal of the base.
    seq: int | None
    #: ``user``, ``assistant``, ``tool`` or ``summary``.
    role: str
    text: str
    #: The tool calls that it asks for: name and arguments.
    calls: tuple[str, ...]
    #: An estimate.
    tokens: int
    #: The message as stored JSON.
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextView:
    """What the model will be sent before the next message: instructions, then the messages."""

    conversation: ConversationId
    session: Session
    #: What the session started from; what was said since follows it.
    base: Base
    lines: tuple[Line, ...]

    @property
    def instructions(self) -> str | None:
        """As they were rendered for the session's first request; ``None`` before that."""
        return self.session.instructions

    @property
    def tokens(self) -> int:
        """An estimate for the messages."""
        return sum(line.tokens for line in self.lines)


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """A context's size, in tokens."""

    #: An estimate.
    tokens: int
    #: What the model takes; ``None`` where nobody says.
    window: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """What a compaction would do, but for the summary, which only a model can write."""

    session: SessionId
    lines: tuple[Line, ...]
    #: Indexes of the lines that no summary would take the place of.
    kept: frozenset[int]

    @property
    def goes(self) -> tuple[Line, ...]:
        """What a summary would take the place of; empty if there is nothing to compact yet."""
        return tuple(line for n, line in enumerate(self.lines) if n not in self.kept)

    @property
    def stays(self) -> tuple[Line, ...]:
        return tuple(line for n, line in enumerate(self.lines) if n in self.kept)

    @property
    def note(self) -> str:
        """Why nothing would be done; empty if something would."""
        return "" if self.goes else NOTHING

    @property
    def messages_before(self) -> int:
        return len(self.lines)

    @property
    def messages_after(self) -> int:
        """With the summary."""
        return len(self.stays) + bool(self.goes)

    @property
    def tokens_before(self) -> int:
        return sum(line.tokens for line in self.lines)

    @property
    def tokens_after(self) -> int:
        """Without the summary."""
        return sum(line.tokens for line in self.stays)
