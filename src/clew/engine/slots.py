"""
Slots: only so many turns of a process work at once, and who has waited longest is next.

After a restart everything that was accepted is due at the same moment. Were all of it begun, all of
it would be slow, and the next end of the process would interrupt all of it: turns that did nothing
wrong would be given up as often interrupted. So a turn is begun, its lease taken and its resume
counted, when there is a slot for it, and not before.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

#: A default for how many turns of a process work at once, and how many of them do so when it has
#: just started: one more with each that got on. The first get done, however soon it ends again.
AT_ONCE, FIRST = 16, 4
#: Seconds of waiting for something else after which a turn lets others have its slot.
LONG = 1.0


class Slots:
    """The slots of a process. Not for several threads."""

    def __init__(self, most: int = AT_ONCE, *, first: int = FIRST, long: float = LONG) -> None:
        self._free = min(first, most)
        self._closed, self.long = most - self._free, long
        self._numbers = count()
        self._line: list[tuple[int, Slot]] = []
        #: Turns that may be what ends the process: one of them is begun at a time, at first alone.
        self._suspects: list[tuple[int, Slot]] = []
        self._suspect: Slot | None = None
        self._alone: asyncio.TimerHandle | None = None

    @contextmanager
    def slot(self, told: asyncio.Event) -> Generator[Slot]:
        """A place in the order of those who may ask; ``told`` is set, too, when it is given."""
        slot = Slot(self, next(self._numbers), told)
        try:
            yield slot
        finally:
            slot.leave()

    def ask(self, slot: Slot) -> None:
        """Put it in line: it is given now or later."""
        heappush(self._suspects if slot.suspect else self._line, (slot.number, slot))
        self._give()

    def lend(self, slot: Slot) -> None:
        """Let others have what was given."""
        slot.given.clear()
        more = min(1, self._closed)
        self._closed -= more
        self._free += 1 + more
        self._give()

    def give_back(self, slot: Slot) -> None:
        """
        Give what was lent at once, free or not: what a model has said is stored without a wait.

        Nobody begins anything until so many others have ended.
        """
        slot.given.set()
        self._free -= 1

    def forget(self, slot: Slot) -> None:
        """It has ended, or waits no more."""
        for line in (self._line, self._suspects):
            if (slot.number, slot) in line:
                line.remove((slot.number, slot))
                line.sort()
        if self._suspect is slot:
            self._suspect = None
            self._let_others()
        if slot.given.is_set():
            self.lend(slot)

    def _let_others(self) -> None:
        if self._alone is not None:
            self._alone.cancel()
            self._alone = None
        self._give()

    def _give(self) -> None:
        while self._free > 0 and self._alone is None and (line := self._next_line()):
            _, slot = heappop(line)
            if slot.suspect:
                loop = asyncio.get_running_loop()
                self._suspect, self._alone = slot, loop.call_later(self.long, self._let_others)
            self._free -= 1
            slot.given.set()
            slot.told.set()

    def _next_line(self) -> list[tuple[int, Slot]]:
        return self._suspects if self._suspects and self._suspect is None else self._line


class Slot:
    """One turn's, from before it is begun until it has ended or waits for a person."""

    def __init__(self, slots: Slots, number: int, told: asyncio.Event) -> None:
        self._slots, self.number, self.told = slots, number, told
        #: Set while it is held.
        self.given = asyncio.Event()
        self.suspect = False
        self._asked = False
        self._waits = 0
        self._lent = False

    def ask(self, *, suspect: bool) -> None:
        """Want it; asking again changes nothing."""
        if not self._asked:
            self._asked, self.suspect = True, suspect
            self._slots.ask(self)

    def leave(self) -> None:
        """Give it back, or stop waiting for it."""
        if self._asked:
            self._asked = self._lent = False
            self._slots.forget(self)

    @contextmanager
    def waiting(self) -> Generator[None]:
        """
        Wait for what is no work of this process: a model, a tool, a provider's pause.

        If that takes long, others have the slot meanwhile.
        """
        self._waits += 1
        timer = asyncio.get_running_loop().call_later(self._slots.long, self._lend)
        try:
            yield
        finally:
            timer.cancel()
            self._waits -= 1
            if self._lent and not self._waits:
                self._lent = False
                self._slots.give_back(self)

    def _lend(self) -> None:
        if self.given.is_set():
            self._lent = True
            self._slots.lend(self)
