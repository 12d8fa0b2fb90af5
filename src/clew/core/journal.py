"""The tool journal: what a turn has asked its tools to do, and what came of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from clew.core.effect import Effect
    from clew.core.ids import TurnId


class CallStatus(enum.Enum):
    OK = "ok"
    ERROR = "error"
    RETRY = "retry"  #: the tool asked the model to try again
    DENIED = "denied"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  #: interrupted; whether it had its effect nobody knows


#: How a result begins that is a sentence about the call, and no value of the tool.
RESULT_PREFIX: Final = {
    CallStatus.ERROR: "error: ",
    CallStatus.RETRY: "error: ",
    CallStatus.DENIED: "not approved: ",
    CallStatus.CANCELLED: "cancelled: ",
    CallStatus.UNKNOWN: "interrupted, outcome unknown: ",
}


def status_of(result: str) -> CallStatus:
    """Return how a call ended, by the result that the model was given."""
    found = (status for status, begins in RESULT_PREFIX.items() if result.startswith(begins))
    return next(found, CallStatus.OK)


@dataclass(frozen=True, kw_only=True, slots=True)
class CallKey:
    """One tool call of one step of one turn."""

    turn_id: TurnId
    step: int
    call_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class JournaledCall:
    key: CallKey
    #: Its place among the calls of its response.
    position: int
    tool: str
    #: The arguments as JSON.
    args: str
    effect: Effect
    runs: int
    #: ``None`` while only the intent is stored.
    status: CallStatus | None
    format: str | None
    #: What the model is given, as JSON in ``format``.
    result: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeResult:
    """A result that is kept beside the entry, which holds its beginning and end."""

    call_id: str
    tool: str
    content: bytes
