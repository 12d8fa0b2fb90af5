"""
Turn concurrency: a limited number of turns per process, the longest waiting first.

After a restart all accepted work is due at the same moment. If all of it began, all of it
would be slow, and the next crash of the process would interrupt all of it: innocent turns
would fail as interrupted too often. So a turn begins, with its lease taken and its resume
counted, only once it has a permit.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

#: Default number of concurrent turns of a process, and their number right after a start: each turn
#: that progresses adds one. The first turns finish, however soon the process ends again.
DEFAULT_LIMIT, INITIAL_LIMIT = 16, 4
#: Seconds of waiting for a model or tool after which a turn lends its permit.
LEND_AFTER = 1.0


class TurnLimiter:
    """The turn permits of a process. Not thread-safe."""

    def __init__(
        self, most: int = DEFAULT_LIMIT, *, first: int = INITIAL_LIMIT, long: float = LEND_AFTER
    ) -> None:
        self._free = min(first, most)
        self._reserve, self.lend_after = most - self._free, long
        self._numbers = count()
        self._queue: list[tuple[int, TurnPermit]] = []
        #: Turns that may crash the process: one of them begins at a time, at first alone.
        self._crash_suspects: list[tuple[int, TurnPermit]] = []
        self._running_suspect: TurnPermit | None = None
        self._solo_timer: asyncio.TimerHandle | None = None

    @contextmanager
    def open_permit(self, told: asyncio.Event) -> Generator[TurnPermit]:
        """Queue for a permit within the block; ``told`` is set when it is granted."""
        slot = TurnPermit(self, next(self._numbers), told)
        try:
            yield slot
        finally:
            slot.release()

    def request_permit(self, slot: TurnPermit) -> None:
        """Queue a permit, to be granted now or later."""
        heappush(self._crash_suspects if slot.is_suspect else self._queue, (slot.number, slot))
        self._grant_permits()

    def lend_permit(self, slot: TurnPermit) -> None:
        """Return a granted permit for use by others."""
        slot.granted.clear()
        more = min(1, self._reserve)
        self._reserve -= more
        self._free += 1 + more
        self._grant_permits()

    def reclaim_permit(self, slot: TurnPermit) -> None:
        """
        Grant a lent permit again, free or not.

        So a model's answer is stored at once. No other turn begins until that many others
        have ended.
        """
        slot.granted.set()
        self._free -= 1

    def remove_permit(self, slot: TurnPermit) -> None:
        """Remove a permit whose turn has ended or no longer waits."""
        for line in (self._queue, self._crash_suspects):
            if (slot.number, slot) in line:
                line.remove((slot.number, slot))
                line.sort()
        self.excuse_suspect(slot)
        if slot.granted.is_set():
            self.lend_permit(slot)

    def excuse_suspect(self, slot: TurnPermit) -> None:
        """Let another suspect begin: it may be the turn for which this one waits."""
        if self._running_suspect is slot:
            self._running_suspect = None
            self._end_solo_run()

    def _end_solo_run(self) -> None:
        if self._solo_timer is not None:
            self._solo_timer.cancel()
            self._solo_timer = None
        self._grant_permits()

    def _grant_permits(self) -> None:
        while self._free > 0 and self._solo_timer is None and (line := self._select_queue()):
            _, slot = heappop(line)
            if slot.is_suspect:
                loop = asyncio.get_running_loop()
                self._running_suspect, self._solo_timer = (
                    slot,
                    loop.call_later(self.lend_after, self._end_solo_run),
                )
            self._free -= 1
            slot.granted.set()
            slot.wake_event.set()

    def _select_queue(self) -> list[tuple[int, TurnPermit]]:
        return (
            self._crash_suspects
            if self._crash_suspects and self._running_suspect is None
            else self._queue
        )


class TurnPermit:
    """The permit of one turn, from before it begins until it ends or waits for a person."""

    def __init__(self, slots: TurnLimiter, number: int, told: asyncio.Event) -> None:
        self._limiter, self.number, self.wake_event = slots, number, told
        #: Set while the permit is held.
        self.granted = asyncio.Event()
        self.is_suspect = False
        self._is_requested = False
        self._waits = 0
        self._is_lent = False
        #: Parts of its calls that work, and the end of the wait after them.
        self._works = 0
        self._is_due = False
        self._timer: asyncio.TimerHandle | None = None

    def request(self, *, suspect: bool) -> None:
        """Request the permit; repeating the request changes nothing."""
        if not self._is_requested:
            self._is_requested, self.is_suspect = True, suspect
            self._limiter.request_permit(self)

    def release(self) -> None:
        """Release the permit, or stop waiting for it."""
        if self._is_requested:
            self._is_requested = self._is_lent = False
            self._limiter.remove_permit(self)

    @contextmanager
    def lend_while_waiting(self, *, for_turns: bool = False) -> Generator[None]:
        """
        Lend the permit during a long wait for a model, a tool or a provider's retry pause.

        A short wait keeps it, unless it is ``for_turns`` here: each of these needs a permit.
        """
        self._waits += 1
        if for_turns:
            self._lend_permit()
            self._limiter.excuse_suspect(self)
        timer = self._start_timer()
        try:
            yield
        finally:
            timer.cancel()
            self._waits -= 1
            if not self._waits:
                self._end_waits()

    def _start_timer(self) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        return loop.call_later(self._limiter.lend_after, self._lend_unless_working)

    def _end_waits(self) -> None:
        self._is_due = False
        if self._timer is not None:
            self._timer.cancel()
        if self._is_lent:
            self._is_lent = False
            self._limiter.reclaim_permit(self)

    @contextmanager
    def keep_while_working(self) -> Generator[None]:
        """
        Keep the permit in the block, however long it takes: it waits for nobody.

        If others began meanwhile, all of them would work at once, and each take the longer.
        """
        self._works += 1
        try:
            yield
        finally:
            self._works -= 1
            if self._is_due and not self._works:
                self._is_due = False
                self._timer = self._start_timer()

    def _lend_unless_working(self) -> None:
        if self._works:
            self._is_due = True
        else:
            self._lend_permit()

    def _lend_permit(self) -> None:
        if self.granted.is_set():
            self._is_lent = True
            self._limiter.lend_permit(self)
