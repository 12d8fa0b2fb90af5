"""Turns: from an accepted message until its outcome is stored."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, TurnId


class TurnState(enum.Enum):
    RUNNING = "running"  #: leased, or waiting for the next owner after a drain or a crash
    WAITING = "waiting"  #: only approvals are open; not leased
    DONE = "done"  #: the outcome is stored


TRANSITIONS = {
    TurnState.RUNNING: frozenset({TurnState.WAITING, TurnState.DONE}),
    TurnState.WAITING: frozenset({TurnState.RUNNING, TurnState.DONE}),
    TurnState.DONE: frozenset[TurnState](),
}


class TurnOutcome(enum.Enum):
    ANSWERED = "answered"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StopRequest(enum.Enum):
    """Request to the turn's owner from someone without the lease."""

    STOP = "stop"  #: requested by a person
    INTERRUPT = "interrupt"  #: a new message interrupts it
    ROLLBACK = "rollback"  #: a new message undoes it
    DELETE = "delete"  #: the conversation is being deleted
    CANCEL = "cancel"  #: the waiting caller disconnected


#: Key of the answer among tool names, none of which is empty.
OUTPUT_KEY = ""

#: A turn that would be resumed this often without a new entry ends as failed instead.
MAX_RESUMES = 3


class StartMode(enum.Enum):
    """Start rule of due work: at once, with a turn permit, or alone."""

    AT_ONCE = "at once"  #: a command, or the end of a turn that was asked to stop
    IN_ORDER = "in order"  #: a turn, when a permit is free
    ALONE = "alone"  #: a turn whose next loss would be the last: one such turn at a time


def start_mode(*, resumes: int) -> StartMode:
    """
    Return how to start a turn that was interrupted this often without a new entry.

    A turn that crashes its process each time would otherwise take other turns with it.
    """
    return StartMode.ALONE if resumes >= MAX_RESUMES - 1 else StartMode.IN_ORDER


class Turn(Record):
    id: TurnId
    conversation_id: ConversationId
    state: TurnState
    outcome: TurnOutcome | None
    #: Message shown to the person, and the failure code for programs.
    error: str | None
    error_code: str | None
    stop: StopRequest | None
    #: The seq of its first entry.
    first_seq: int
    #: Model requests that were answered, over all runs of the turn.
    steps: int
    #: Resumes after a lost owner, without a new entry since.
    resumes: int
    #: Consecutive corrections sent to the model, by tool; for the answer under ``OUTPUT_KEY``.
    retries: dict[str, int]
    model: str | None
    started_at: datetime
    finished_at: datetime | None
    #: The id of its trace, if it is traced: the same over all its runs.
    trace_id: str | None = None
