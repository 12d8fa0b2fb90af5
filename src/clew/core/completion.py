"""Completions: inputs by which something that went on by itself tells that it has ended."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from clew.core.ids import InboxId
from clew.core.run_report import REPORT_KEY, without_report
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from clew.core.ids import ConversationId, TurnId

#: Completions are collected for this long …
COLLECT_FOR: Final = timedelta(seconds=3)
#: … or until there are so many.
MAX_COLLECTED: Final = 10
#: Turns in a row, each caused by the one before, that run without a message from a person.
MAX_HOPS: Final = 5

#: Keys of an input's payload. Programs that begin turns without a person set the first two.
UNATTENDED_KEY, HOPS_KEY = "unattended", "hops"
_CAUSE_KEY = "cause"
#: The kind of a cause that is no end: the task that an agent was given by another.
TASK: Final = "task"
#: Key of the payload of a task: as people know it.
_TASK_KEY: Final = "task"
#: What the completions of a task's turn take over from its inputs.
_TERMS: Final = (_TASK_KEY, REPORT_KEY)


class Cause(Record):
    """Subject of a completion: ``process``, ``prc_…``."""

    kind: str
    id: str


class NewCompletion(Record):
    """A completion before it is accepted."""

    #: Made from the cause: the same end is accepted once.
    id: InboxId
    conversation: ConversationId
    #: For the model, and for people who read the log.
    text: str
    cause: Cause
    #: The turn that began what has ended, if one did.
    turn: TurnId | None = None
    #: Strangers may have written a part of the text.
    untrusted: bool = False


class UnattendedLimits(Record):
    """Limits of turns that no person began."""

    #: Tokens of such turns in a day, for each scope.
    tokens: int


def make_completion_id(cause: str) -> InboxId:
    """Return the id of the completion of what has this id."""
    return InboxId(f"inb_{cause}")


def write_payload(cause: Cause, begun_by: Sequence[str]) -> dict[str, object]:
    """
    Return the payload of a completion.

    ``begun_by``: the payloads of the inputs of the turn that began what has ended. Its people
    may answer questions, and lose the answer with their access.
    """
    payload: dict[str, object] = {
        UNATTENDED_KEY: True,
        HOPS_KEY: count_hops(begun_by) + 1,
        _CAUSE_KEY: [cause.kind, cause.id],
    }
    for told in map(_parse, begun_by):
        payload |= {key: told[key] for key in ("sender", "account") if key in told}
        payload |= {key: told[key] for key in _TERMS if _TASK_KEY in told and key in told}
    return payload


def write_task_payload(
    cause: Cause, title: str, begun_by: Sequence[str], *, attended: bool, hops: int
) -> dict[str, object]:
    """
    Return the payload of a task that the model of a turn gives to another agent.

    ``begun_by``: the payloads of the inputs of that turn, whose people may answer questions.
    Of the texts of its turns, none is delivered.
    """
    payload = write_payload(cause, begun_by) | {_TASK_KEY: title, HOPS_KEY: hops}
    if attended:
        del payload[UNATTENDED_KEY]
    return without_report(payload)


def read_task(payloads: Iterable[str]) -> str | None:
    """Return the task that a turn with these inputs belongs to; ``None`` if it is none."""
    return next((task for one in payloads if (task := _parse(one).get(_TASK_KEY))), None)


def read_cause(payload: str) -> Cause | None:
    """Return what an input tells the end of; ``None`` for others than completions."""
    if f'"{_CAUSE_KEY}"' not in payload:
        return None
    found: list[str] | None = _parse(payload).get(_CAUSE_KEY)
    return None if found is None else Cause(kind=found[0], id=found[1])


def count_hops(payloads: Iterable[str]) -> int:
    """Return how many turns without a person led to a turn with these inputs; 0 with a person."""
    inputs = [_parse(payload) for payload in payloads]
    if not all(one.get(UNATTENDED_KEY) for one in inputs):
        return 0
    return max((one.get(HOPS_KEY, 0) for one in inputs), default=0)


def exceeds_hops(payloads: Iterable[str]) -> bool:
    """Return whether too many turns without a person led to a turn with these inputs."""
    return count_hops(payloads) > MAX_HOPS


def is_attended(payloads: Iterable[str]) -> bool:
    """Return whether a person said one of these inputs of a turn."""
    inputs = [_parse(payload) for payload in payloads]
    return not (inputs and all(one.get(UNATTENDED_KEY) for one in inputs))


def window_end(now: datetime, *, earlier: Sequence[datetime]) -> datetime:
    """Return when completions are due that get one now and got others ``earlier``."""
    if len(earlier) + 1 >= MAX_COLLECTED:
        return now
    return min(earlier, default=now) + COLLECT_FOR


def _parse(payload: str) -> dict[str, Any]:
    return json.loads(payload)
