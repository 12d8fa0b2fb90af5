"""The hub: what happens in this process is told at once to those who follow a conversation here."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew.core.events import (
    Delta,
    DeltaKind,
    EntryAppended,
    Retracted,
    Snapshot,
    TurnFinished,
    TurnStarted,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId
    from clew.core.turn import TurnOutcome
    from clew.errors import StoreError


class Changed:
    """Something in the store may have changed: look there."""


CHANGED = Changed()

#: Pieces that one slow follower may fall behind by; what is left out is in the log.
_MOST = 1000

_STORED = (EntryAppended, TurnStarted, TurnFinished)


class Follower:
    """
    One follower's queue.

    It never makes a turn wait: when it is full, what is provisional is left out, and ``CHANGED``
    makes the follower read the rest from the log.
    """

    def __init__(self, *, live: bool) -> None:
        #: Whether pieces of a response are wanted.
        self.live = live
        self._queue: asyncio.Queue[ConversationEvent | Changed] = asyncio.Queue()
        self._pending_change = False
        self._stored = 0

    @property
    def has_stored(self) -> bool:
        """Whether anything waits that tells of what is stored, in the order in which it was."""
        return self._stored > 0

    def put(self, event: ConversationEvent | Changed) -> None:
        if self._queue.qsize() < _MOST:
            self._stored += isinstance(event, _STORED)
            self._queue.put_nowait(event)
        elif not self._pending_change:
            self._pending_change = True
            self._queue.put_nowait(CHANGED)

    async def get(self) -> ConversationEvent | Changed:
        event = await self._queue.get()
        self._stored -= isinstance(event, _STORED)
        if event is CHANGED:
            self._pending_change = False
        return event

    def take(self) -> list[ConversationEvent | Changed]:
        """All that waits, in order."""
        self._pending_change, self._stored = False, 0
        return [self._queue.get_nowait() for _ in range(self._queue.qsize())]


class Hub:
    """Followers by conversation, and the text of the response that is being made in each."""

    def __init__(self) -> None:
        self._followers: defaultdict[ConversationId, list[Follower]] = defaultdict(list)
        self._shown: dict[ConversationId, list[Delta]] = {}
        self._held_up: dict[ConversationId, tuple[int, StoreError]] = {}
        #: Turns that ended in this process.
        self.closed: Counter[TurnOutcome] = Counter()

    @contextmanager
    def follow(self, conversation: ConversationId, *, live: bool = True) -> Generator[Follower]:
        """
        Follow from now on; nothing that happens while the block lasts is missed.

        Who needs no pieces of responses (``live``) does not make the model stream them.
        """
        follower = Follower(live=live)
        self._followers[conversation].append(follower)
        try:
            yield follower
        finally:
            self._followers[conversation].remove(follower)
            if not self._followers[conversation]:
                del self._followers[conversation]

    def followed(self, conversation: ConversationId) -> bool:
        """Whether anybody here would see pieces of a response."""
        return any(follower.live for follower in self._followers.get(conversation, ()))

    def snapshot(self, conversation: ConversationId) -> Snapshot | None:
        """The pieces that were told since the last entry."""
        if (pieces := self._shown.get(conversation)) is None:
            return None
        return Snapshot(
            conversation=conversation,
            turn=pieces[0].turn,
            after=pieces[0].after,
            text="".join(piece.text for piece in pieces),
        )

    def publish(self, conversation: ConversationId, event: ConversationEvent | Changed) -> None:
        match event:
            case Delta(kind=DeltaKind.TEXT):
                self._shown.setdefault(conversation, []).append(event)
            case EntryAppended() | Retracted() | TurnStarted():
                self._shown.pop(conversation, None)
            case TurnFinished(turn=turn):
                self._shown.pop(conversation, None)
                if turn.outcome is not None:
                    self.closed[turn.outcome] += 1
            case _:
                pass
        for follower in self._followers.get(conversation, ()):
            follower.put(event)

    def hold_up(self, conversation: ConversationId, error: StoreError) -> None:
        """Note that work could not be stored, again: it is tried anew, and whoever waits learns."""
        times, _ = self._held_up.get(conversation, (0, error))
        self._held_up[conversation] = (times + 1, error)
        self.publish(conversation, CHANGED)

    def go_on(self, conversation: ConversationId) -> None:
        """Note that work can be stored."""
        self._held_up.pop(conversation, None)

    def held_up(self, conversation: ConversationId) -> tuple[int, StoreError | None]:
        """Return how often in a row work could not be stored, and why."""
        return self._held_up.get(conversation, (0, None))

    def publish_to_all(self, event: Changed) -> None:
        for followers in self._followers.values():
            for follower in followers:
                follower.put(event)
