"""Sessions: views on a conversation's log that fit a context window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, SessionId
    from clew.core.session_prefix import InstructionPart

# Reasons why sessions open and end. The reason of a rotation is both: it becomes the closed head's
# end_reason unless it has one already, and stays as the successor's opened_by.
START = "start"
COMPRESSION = "compression"
RESTORE = "restore"
REWIND = "rewind"
FORGET = "forget"
RELOAD = "reload"
REOPEN = "reopen"
BRANCH = "branch"
IMPORT = "import"
RESET = "reset"
IDLE = "idle"
DAILY = "daily"
TUI_CLOSE = "tui_close"
USER_EXIT = "user_exit"
ORPHANED_COMPRESSION = "orphaned_compression"


class Session(Record):
    """Base plus every message appended since it opened."""

    id: SessionId
    conversation_id: ConversationId
    #: The session that this one continues after a rotation.
    predecessor: SessionId | None
    opened_at: datetime
    opened_by: str
    #: The last seq before it opened: its own entries are those above.
    opened_seq: int
    #: Rendered before its first request and sent as stored; ``None`` before that.
    instructions: tuple[InstructionPart, ...] | None
    ended_at: datetime | None
    end_reason: str | None
    #: Digest of the definitions of its tools; ``None`` until its first request.
    tools: str | None = None

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


class Head(Record):
    """Expected head of a rotation: the current session and the last seq of the log."""

    session: SessionId
    last_seq: int
