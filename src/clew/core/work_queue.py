"""
Queue of a conversation: its open inbox items in order of acceptance.

Without a turn, its first item decides what to do next (``next_work``); while a turn runs,
steering messages may join it at a step boundary (``select_steering``).
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from clew.core.completion import MAX_COLLECTED as MAX_COMPLETIONS
from clew.core.completion import exceeds_hops
from clew.core.double_text import MAX_COLLECTED, DoubleText
from clew.core.inbox import InboxItem, InboxKind
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


class StartTurn(Record):
    """Start one turn with these messages and completions, in this order."""

    items: tuple[InboxItem, ...]


class RunCommand(Record):
    """Run this command or expiry."""

    item: InboxItem


class WaitUntil(Record):
    """Wait: nothing is due before this time."""

    until: datetime


Work = StartTurn | RunCommand | WaitUntil


def next_work(line: Sequence[InboxItem], now: datetime) -> Work | None:
    """Return the next work when no turn is unfinished; ``None`` for an empty queue."""
    if not line:
        return None
    first = line[0]
    if first.kind is InboxKind.COMPLETION:
        return _report(line, now)
    if first.kind is not InboxKind.MESSAGE:
        return RunCommand(item=first)
    if not first.is_due(now):
        return WaitUntil(until=first.due_at)
    if first.double_text is not DoubleText.COLLECT:
        return StartTurn(items=(first,))
    burst = takewhile(lambda item: _joins_burst(first, item, now), line)
    return StartTurn(items=tuple(burst)[:MAX_COLLECTED])


def _report(line: Sequence[InboxItem], now: datetime) -> Work:
    """Return the work for a queue that begins with completions: a person waits for none of them."""
    reports = tuple(takewhile(lambda item: item.kind is InboxKind.COMPLETION, line))
    due = tuple(takewhile(lambda item: item.is_due(now), reports))
    behind = next_work(line[len(reports) :], now)
    if due == reports and isinstance(behind, StartTurn):
        return StartTurn(items=(*reports, *behind.items))
    if due:
        return StartTurn(items=due[:MAX_COMPLETIONS])
    if isinstance(behind, WaitUntil):
        return WaitUntil(until=min(reports[0].due_at, behind.until))
    return WaitUntil(until=reports[0].due_at)


def _joins_burst(first: InboxItem, item: InboxItem, now: datetime) -> bool:
    return (
        item.kind is InboxKind.MESSAGE
        and item.double_text is DoubleText.COLLECT
        and item.route == first.route
        and item.is_due(now)
    )


def select_steering(line: Sequence[InboxItem], now: datetime) -> tuple[InboxItem, ...]:
    """Return the messages and completions that join a running turn now: those before a command."""
    steering: list[InboxItem] = []
    held = False
    for item in takewhile(
        lambda item: item.kind in (InboxKind.MESSAGE, InboxKind.COMPLETION), line
    ):
        # What may begin no turn does not go on in one either, nor does what ended after it.
        held = held or (item.kind is InboxKind.COMPLETION and exceeds_hops([item.payload]))
        joins = item.double_text in (DoubleText.STEER, DoubleText.COLLECT) and item.is_due(now)
        if joins and not (held and item.kind is InboxKind.COMPLETION):
            steering.append(item)
    return tuple(steering)


def select_interruption(line: Sequence[InboxItem], now: datetime) -> tuple[InboxItem, ...]:
    """Return the messages that join a turn now although it waits for answers: those of people."""
    joining = select_steering(line, now)
    return tuple(item for item in joining if item.kind is InboxKind.MESSAGE)
