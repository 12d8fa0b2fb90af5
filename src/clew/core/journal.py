"""The tool journal: what a turn has asked its tools to do, and what came of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
