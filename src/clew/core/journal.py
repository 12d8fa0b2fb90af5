"""Tool journal: the tool calls of a turn and their results."""

from __future__ import annotations

import enum
import hashlib
from typing import TYPE_CHECKING, Final

from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.effect import Effect
    from clew.core.ids import GrantId, TurnId


class CallStatus(enum.Enum):
    OK = "ok"
    ERROR = "error"
    RETRY = "retry"  #: the tool asked the model to try again
    DENIED = "denied"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  #: interrupted; its effect is unknown


#: Prefixes of results that describe the call instead of a value from the tool.
RESULT_PREFIX: Final = {
    CallStatus.ERROR: "error: ",
    CallStatus.RETRY: "error: ",
    CallStatus.DENIED: "not approved: ",
    CallStatus.CANCELLED: "cancelled: ",
    CallStatus.UNKNOWN: "interrupted, outcome unknown: ",
}


def status_from_result(result: str) -> CallStatus:
    """Return the status of a call, derived from the result sent to the model."""
    found = (status for status, begins in RESULT_PREFIX.items() if result.startswith(begins))
    return next(found, CallStatus.OK)


class CallKey(Record):
    """Key of one tool call of one step of one turn."""

    turn_id: TurnId
    step: int
    call_id: str

    @property
    def name(self) -> str:
        """Return the key as one text."""
        return f"{self.turn_id} {self.step} {self.call_id}"

    def make_digest(self) -> str:
        """Return the hash from which a tool makes ids: the same when the call runs again."""
        return hashlib.sha256(self.name.encode()).hexdigest()


class JournaledCall(Record):
    key: CallKey
    #: Its index among the calls of its response.
    position: int
    tool: str
    #: The arguments as JSON.
    args: str
    effect: Effect
    runs: int
    #: As the model wrote ``args``, if a plugin has changed them.
    requested: str | None
    #: A call inside of it waits for approval: once answered, it runs again from the top.
    suspended: bool
    #: ``None`` while only the intent is stored.
    status: CallStatus | None
    format: str | None
    #: The result sent to the model, as JSON in ``format``.
    result: str | None
    #: The decision and its reason; ``None`` if an earlier version of Clew decided.
    reason: str | None = None
    #: The grant that allowed it.
    grant_id: GrantId | None = None
    #: Its result holds text that strangers may have written.
    untrusted: bool = False


class CallReason(Record):
    """The decision about a call and its reason, stored with it."""

    text: str
    grant: GrantId | None = None
    untrusted: bool = False


class CallFacts(Record):
    """Facts of a call beside its arguments and its result."""

    tool: str
    effect: Effect
    #: How often it was started.
    runs: int
    #: ``None`` while it runs.
    status: CallStatus | None
    #: Why it ran or did not; ``None`` for calls of early versions.
    reason: str | None
    started_at: datetime
    finished_at: datetime | None


class FullToolResult(Record):
    """Full tool result, stored beside the entry that holds its start and end."""

    call_id: str
    tool: str
    content: bytes
