"""
Double text: handling of messages that arrive while a turn is unfinished.

The queue of a conversation is its open inbox items in order of acceptance. Without a turn,
its first item decides what to do next (``next_work``); while a turn runs, steering messages
may join it at a step boundary (``select_steering``).
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
QUIET_PERIOD = timedelta(milliseconds=600)
#: … or this long after its first message …
MAX_WINDOW = timedelta(seconds=3)
#: … or with this many messages.
MAX_COLLECTED = 10


class DoubleText(enum.Enum):
    """Rule for a message that arrives while a turn is unfinished."""

    QUEUE = "queue"  #: its own turn after this one
    STEER = "steer"  #: joins the running turn at the next step
    COLLECT = "collect"  #: collects a burst first, then as steer
    INTERRUPT = "interrupt"  #: stops the turn, keeps its partial text, then its own turn
    ROLLBACK = "rollback"  #: stops the turn and rewinds to before it, then its own turn
    REJECT = "reject"  #: refused while a turn is unfinished


AUTO = "auto"


def resolve_rule(setting: str, *, people: bool) -> DoubleText:
    """
    Return the rule of a setting; ``auto`` collects from people, queues from programs.

    :raises UsageError: if there is no such rule
    """
    if setting == AUTO:
        return DoubleText.COLLECT if people else DoubleText.QUEUE
    try:
        return DoubleText(setting)
    except ValueError:
        known = ", ".join([AUTO, *(rule.value for rule in DoubleText)])
        raise UsageError(f"there is no double-text rule {setting!r}: use one of {known}") from None


def window_end(now: datetime, *, earlier: Sequence[datetime]) -> datetime:
    """Return when a burst ends that gets a message now and got others ``earlier``."""
    if len(earlier) + 1 >= MAX_COLLECTED:
        return now
    return min(now + QUIET_PERIOD, min(earlier, default=now) + MAX_WINDOW)


@dataclass(frozen=True, kw_only=True, slots=True)
class StartTurn:
    """Start one turn with these messages, in this order."""

    items: tuple[InboxItem, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCommand:
    """Run this command, expiry or completion."""

    item: InboxItem


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitUntil:
    """Wait: nothing is due before this time."""

    until: datetime


Work = StartTurn | RunCommand | WaitUntil


def next_work(line: Sequence[InboxItem], now: datetime) -> Work | None:
    """Return the next work when no turn is unfinished; ``None`` for an empty queue."""
    if not line:
        return None
    first = line[0]
    if first.kind is not InboxKind.MESSAGE:
        return RunCommand(item=first)
    if not first.is_due(now):
        return WaitUntil(until=first.due_at)
    if first.double_text is not DoubleText.COLLECT:
        return StartTurn(items=(first,))
    burst = takewhile(lambda item: _joins_burst(first, item, now), line)
    return StartTurn(items=tuple(burst)[:MAX_COLLECTED])


def _joins_burst(first: InboxItem, item: InboxItem, now: datetime) -> bool:
    return (
        item.kind is InboxKind.MESSAGE
        and item.double_text is DoubleText.COLLECT
        and item.route == first.route
        and item.is_due(now)
    )


def select_steering(line: Sequence[InboxItem], now: datetime) -> tuple[InboxItem, ...]:
    """Return the messages that join a running turn now: those before any command."""
    before_commands = takewhile(lambda item: item.kind is InboxKind.MESSAGE, line)
    return tuple(
        item
        for item in before_commands
        if item.double_text in (DoubleText.STEER, DoubleText.COLLECT) and item.is_due(now)
    )
