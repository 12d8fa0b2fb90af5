"""Contexts for inspection: the model's next input, and previews of a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.session_prefix import join_instructions
from clew.record import Record

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionId
    from clew.core.session import Session
    from clew.core.session_base import Base

#: Role of a message that summarises others.
SUMMARY = "summary"


class ContextMessageView(Record):
    """One message of a context."""

    #: Its seq in the log; ``None`` for an inline message of the base.
    seq: int | None
    #: ``user``, ``assistant``, ``tool`` or ``summary``.
    role: str
    text: str
    #: The tool calls that it requests: name and arguments.
    calls: tuple[str, ...]
    #: An estimate.
    tokens: int
    #: The message as stored JSON.
    message: str


class ContextView(Record):
    """Context of the next request: instructions, then messages."""

    conversation: ConversationId
    session: Session
    #: The session's base; later messages follow it.
    base: Base
    lines: tuple[ContextMessageView, ...]

    @property
    def instructions(self) -> str | None:
        """Return the instructions as rendered for the first request; ``None`` before it."""
        return join_instructions(self.session.instructions)

    @property
    def tokens(self) -> int:
        """Return the estimated tokens of the messages."""
        return sum(line.tokens for line in self.lines)


class ContextSize(Record):
    """Size of a context, in tokens."""

    #: An estimate.
    tokens: int
    #: The model's context window; ``None`` if unknown.
    window: int | None


class CompactionPreview(Record):
    """Effect of a compaction, except for the summary's text, which needs a model."""

    session: SessionId
    lines: tuple[ContextMessageView, ...]
    #: Indexes of the lines that a summary would not replace.
    kept: frozenset[int]
    #: The reason why nothing would change; empty if something would.
    note: str

    @property
    def replaced_lines(self) -> tuple[ContextMessageView, ...]:
        """Return the messages that a summary would replace; empty if there are none."""
        return tuple(line for n, line in enumerate(self.lines) if n not in self.kept)

    @property
    def kept_lines(self) -> tuple[ContextMessageView, ...]:
        return tuple(line for n, line in enumerate(self.lines) if n in self.kept)

    @property
    def messages_before(self) -> int:
        return len(self.lines)

    @property
    def messages_after(self) -> int:
        """Return the number of messages, including the summary."""
        return len(self.kept_lines) + bool(self.replaced_lines)

    @property
    def tokens_before(self) -> int:
        return sum(line.tokens for line in self.lines)

    @property
    def tokens_after(self) -> int:
        """Return the tokens without the summary."""
        return sum(line.tokens for line in self.kept_lines)
