"""How an input ended, as a client is told: the answer's text, or a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.problems import INVALID, SERVER, Problem
from clew.core.inbox import InboxOutcome
from clew.core.turn import TurnOutcome

if TYPE_CHECKING:
    from clew.core.events import InputCompleted

OVERFLOW = "context_length_exceeded"
#: What was sent is too much for the model.
_TOO_MUCH = frozenset({OVERFLOW, "request_too_large"})
#: Failures that are not the provider's.
_OURS = frozenset({"agent_code", "internal", "interrupted", "max_steps", "toolset"})

STOPPING = Problem(
    status=503,
    message="the server is stopping; the message is stored and will be answered when it is back: "
    "the conversation will hold the answer",
    code="stopping",
    type=SERVER,
)
FILED = Problem(
    status=503,
    message="the server is stopping; what was asked is stored and will be done when it is back",
    code="stopping",
    type=SERVER,
)
FILED_NO_ROOM = Problem(
    status=507,
    message="what was asked is stored, and there is no space left to do it: make room on the disk "
    "of the store; then it is done",
    code="store_full",
    type=SERVER,
)
#: Pieces got lost on the way to a client that reads too slowly.
INCOMPLETE = Problem(
    status=502,
    message="pieces of the answer got lost on the way; the conversation holds the whole answer",
    code="incomplete",
    type=SERVER,
)


def said(end: InputCompleted) -> str | Problem:
    """What the client gets for its input."""
    match end.outcome:
        case InboxOutcome.EXECUTED:
            return end.note or ""
        case InboxOutcome.REJECTED:
            return rejected(end.note)
        case InboxOutcome.CANCELLED:
            return _conflict(f"the message was cancelled: {end.note or 'taken back'}", "cancelled")
        case InboxOutcome.TURN | InboxOutcome.MERGED | InboxOutcome.STEERED:
            return _answered(end)


def rejected(note: str | None = None) -> Problem:
    """The message came in mid turn, and was to be refused then."""
    return _conflict(note or "another turn is unfinished", "rejected")


def _answered(end: InputCompleted) -> str | Problem:
    assert end.turn is not None
    match end.turn.outcome:
        case TurnOutcome.FAILED:
            return _failed(end.text, end.turn.error_code or "internal")
        case TurnOutcome.CANCELLED:
            return _conflict("the turn was stopped before it had an answer", "cancelled")
        case _:
            return end.text


def _failed(message: str, code: str) -> Problem:
    if code in _TOO_MUCH:
        return Problem(status=400, message=message, code=code, param="messages")
    status = 500 if code in _OURS else 502
    return Problem(status=status, message=message, code=code, type=SERVER)


def conflict(message: str) -> Problem:
    """What was asked could not be done as things are now."""
    return _conflict(message, "conflict")


def _conflict(message: str, code: str) -> Problem:
    return Problem(status=409, message=message, code=code, type=INVALID)


def retracted(reason: str) -> Problem:
    """A stream cannot take back what went out."""
    message = f"the answer was begun anew: {reason}. The conversation will hold the whole answer"
    return Problem(status=502, message=message, code="retracted", type=SERVER)
