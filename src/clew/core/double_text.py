"""
Double text: what happens to a message that arrives while a turn is unfinished.

The line of a conversation is its open inbox items in order of acceptance. Without a turn, the item
at its front decides what is done next (``next_work``); while a turn runs, messages that steer may
join it at a step boundary (``steering``).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from clew.core.inbox import InboxItem, InboxKind
from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The collect window closes after this much quiet …
QUIET = timedelta(milliseconds=600)
#: … or this long after its first message …
LONGEST = timedelta(seconds=3)
#: … or with this many messages.
MOST = 10


class DoubleText(enum.Enum):
    QUEUE = "queue"  #: a turn of its own after this one
    STEER = "steer"  #: joins the running turn at the next step
    COLLECT = "collect"  #: gathers a burst first, then as steer
    INTERRUPT = "interrupt"  #: stops the turn, keeps what it said, then a turn of its own
    ROLLBACK = "rollback"  #: stops the turn and rewinds to before it, then a turn of its own
    REJECT = "reject"  #: refused while a turn is unfinished


AUTO = "auto"


def rule_for(setting: str, *, people: bool) -> DoubleText:
    """
    The rule that a setting names; ``auto`` collects from people on channels and queues from
    programs.

    :raises UsageError: if there is no such rule
    """
    if setting == AUTO:
        return DoubleText.COLLECT if people else DoubleText.QUEUE
    try:
        return DoubleText(setting)
    except ValueError:
        known = ", ".join([AUTO, *(rule.value for rule in DoubleText)])
        raise UsageError(f"there is no double-text rule {setting!r}: use one of {known}") from None


def window_closes(now: datetime, *, earlier: Sequence[datetime]) -> datetime:
    """When a burst ends that gets a message now, after those that it received ``earlier``."""
    if len(earlier) + 1 >= MOST:
        return now
    return min(now + QUIET, min(earlier, default=now) + LONGEST)


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnTurn:
    """These messages begin one turn together, in this order."""

    items: tuple[InboxItem, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Execute:
    """This command, expiry or completion is carried out."""

    item: InboxItem


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    """Nothing is due before this moment."""

    until: datetime


Work = OwnTurn | Execute | Wait


def next_work(line: Sequence[InboxItem], now: datetime) -> Work | None:
    """What the line asks for when no turn is unfinished; ``None`` for an empty line."""
    if not line:
        return None
    first = line[0]
    if first.kind is not InboxKind.MESSAGE:
        return Execute(item=first)
    if not first.is_due(now):
        return Wait(until=first.due_at)
    if first.double_text is not DoubleText.COLLECT:
        return OwnTurn(items=(first,))
    burst = takewhile(lambda item: _collects_with(first, item, now), line)
    return OwnTurn(items=tuple(burst)[:MOST])


def _collects_with(first: InboxItem, item: InboxItem, now: datetime) -> bool:
    return (
        item.kind is InboxKind.MESSAGE
        and item.double_text is DoubleText.COLLECT
        and item.route == first.route
        and item.is_due(now)
    )


def steering(line: Sequence[InboxItem], now: datetime) -> tuple[InboxItem, ...]:
    """The messages that join a running turn at this step boundary: those before any command."""
    before_commands = takewhile(lambda item: item.kind is InboxKind.MESSAGE, line)
    return tuple(
        item
        for item in before_commands
        if item.double_text in (DoubleText.STEER, DoubleText.COLLECT) and item.is_due(now)
    )
