"""Mapping of an input's outcome to a text or a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.problems import INVALID_REQUEST, REJECTED_MESSAGE, SERVER_ERROR, Problem
from clew.core.inbox import InboxOutcome
from clew.core.turn import TurnOutcome

if TYPE_CHECKING:
    from clew.core.events import InputCompleted

OVERFLOW = "context_length_exceeded"
#: The input is too large for the model.
_OVERSIZED = frozenset({OVERFLOW, "request_too_large"})
#: Failures not caused by the provider.
_INTERNAL_CODES = frozenset({"agent_code", "internal", "interrupted", "max_steps", "toolset"})

STOPPING = Problem(
    status=503,
    message="the server is stopping; the message is stored and will be answered when it is back: "
    "the conversation will hold the answer",
    code="stopping",
    type=SERVER_ERROR,
)
STOPPING_QUEUED = Problem(
    status=503,
    message="the server is stopping; the request is stored and will be carried out when it is back",
    code="stopping",
    type=SERVER_ERROR,
)
STORE_FULL_QUEUED = Problem(
    status=507,
    message="the request is stored, but there is no space left to carry it out: make room on the "
    "disk of the store; then it is carried out",
    code="store_full",
    type=SERVER_ERROR,
)
#: Chunks were lost on the way to a client that reads too slowly.
INCOMPLETE_STREAM = Problem(
    status=502,
    message="parts of the answer were lost on the way; the conversation holds the whole answer",
    code="incomplete",
    type=SERVER_ERROR,
)


def text_or_problem(end: InputCompleted) -> str | Problem:
    """Return the text or the problem for an input that has ended."""
    match end.outcome:
        case InboxOutcome.EXECUTED:
            return end.note or ""
        case InboxOutcome.REJECTED:
            return _build_conflict(end.note or REJECTED_MESSAGE, "rejected")
        case InboxOutcome.CANCELLED:
            return _build_conflict(
                f"the message was cancelled: {end.note or 'taken back'}", "cancelled"
            )
        case InboxOutcome.TURN | InboxOutcome.MERGED | InboxOutcome.STEERED:
            return _turn_result(end)


def _turn_result(end: InputCompleted) -> str | Problem:
    assert end.turn is not None
    match end.turn.outcome:
        case TurnOutcome.FAILED:
            return _failure_problem(end.text, end.turn.error_code or "internal")
        case TurnOutcome.CANCELLED:
            return _build_conflict("the turn was stopped before it had an answer", "cancelled")
        case _:
            return end.text


def _failure_problem(message: str, code: str) -> Problem:
    if code in _OVERSIZED:
        return Problem(status=400, message=message, code=code, param="messages")
    status = 500 if code in _INTERNAL_CODES else 502
    return Problem(status=status, message=message, code=code, type=SERVER_ERROR)


def _build_conflict(message: str, code: str) -> Problem:
    return Problem(status=409, message=message, code=code, type=INVALID_REQUEST)


def retracted_problem(reason: str) -> Problem:
    """Return the problem for a retraction: a stream cannot take back what was sent."""
    message = f"the answer was started again: {reason}. The conversation will hold the whole answer"
    return Problem(status=502, message=message, code="retracted", type=SERVER_ERROR)
