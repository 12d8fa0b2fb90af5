"""Turns: what one accepted message leads to, until its outcome is stored."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, TurnId


class TurnState(enum.Enum):
    RUNNING = "running"  #: a lease is held, or its owner died, or it waits for the next owner
    WAITING = "waiting"  #: only approvals are open; no lease is held
    DONE = "done"  #: the outcome is stored


MOVES = {
    TurnState.RUNNING: frozenset({TurnState.WAITING, TurnState.DONE}),
    TurnState.WAITING: frozenset({TurnState.RUNNING, TurnState.DONE}),
    TurnState.DONE: frozenset[TurnState](),
}


class Outcome(enum.Enum):
    ANSWERED = "answered"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Stop(enum.Enum):
    """What somebody without the lease asks of the turn's owner."""

    STOP = "stop"  #: a person said so
    INTERRUPT = "interrupt"  #: a new message interrupts it
    ROLLBACK = "rollback"  #: a new message undoes it
    DELETE = "delete"  #: the conversation is being deleted
    CANCEL = "cancel"  #: the caller who waited for it went away


#: Stands for the answer among the names of tools, none of which is empty.
OUTPUT = ""

#: A turn that would be resumed this often without a new entry ends as failed instead.
MAX_RESUMES = 3


class Begins(enum.Enum):
    """Whether what is due waits for a slot: only so many turns of a process are at work at once."""

    AT_ONCE = "at once"  #: a command, or the end of a turn that was asked to stop
    IN_ORDER = "in order"  #: a turn, when a slot is free
    ALONE = "alone"  #: a turn whose next loss would be the last: one such turn at a time


def begins(*, resumes: int) -> Begins:
    """
    How a turn is begun that was interrupted so often without a new entry.

    What ends its process each time would else take others with it as often.
    """
    return Begins.ALONE if resumes >= MAX_RESUMES - 1 else Begins.IN_ORDER


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    id: TurnId
    conversation_id: ConversationId
    state: TurnState
    outcome: Outcome | None
    #: What the person was told, and the kind of the failure for programs.
    error: str | None
    error_code: str | None
    stop: Stop | None
    #: The seq of its first entry.
    first_seq: int
    #: Model requests that were answered, over all runs of the turn.
    steps: int
    #: Resumes after a lost owner, without a new entry since.
    resumes: int
    #: How often in a row the model was told what is wrong: by tool, for the answer as ``OUTPUT``.
    retries: dict[str, int]
    model: str | None
    started_at: datetime
    finished_at: datetime | None
