"""In-process event bus: live events for the subscribers of each conversation."""

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


class StoreChanged:
    """A sign that the store may have changed and must be read."""


STORE_CHANGED = StoreChanged()

#: Events that a slow subscriber may fall behind by; dropped ones are in the log.
_MAX_QUEUED = 1000

_STORED_EVENTS = (EntryAppended, TurnStarted, TurnFinished)


class Subscriber:
    """
    The event queue of one subscriber.

    It never makes a turn wait: when it is full, provisional events are dropped, and
    ``STORE_CHANGED`` makes the subscriber read the rest from the log.
    """

    def __init__(self, *, live: bool) -> None:
        #: True if pieces of a response are requested.
        self.live = live
        self._queue: asyncio.Queue[ConversationEvent | StoreChanged] = asyncio.Queue()
        self._pending_change = False
        self._stored = 0

    @property
    def has_stored_events(self) -> bool:
        """Return whether an event about a stored change waits in the queue."""
        return self._stored > 0

    def put(self, event: ConversationEvent | StoreChanged) -> None:
        if self._queue.qsize() < _MAX_QUEUED:
            self._stored += isinstance(event, _STORED_EVENTS)
            self._queue.put_nowait(event)
        elif not self._pending_change:
            self._pending_change = True
            self._queue.put_nowait(STORE_CHANGED)

    async def get(self) -> ConversationEvent | StoreChanged:
        event = await self._queue.get()
        self._stored -= isinstance(event, _STORED_EVENTS)
        if event is STORE_CHANGED:
            self._pending_change = False
        return event

    def drain_events(self) -> list[ConversationEvent | StoreChanged]:
        """Return all queued events in order."""
        self._pending_change, self._stored = False, 0
        return [self._queue.get_nowait() for _ in range(self._queue.qsize())]


class EventBus:
    """Subscribers by conversation, and the text of each response in progress."""

    def __init__(self) -> None:
        self._subscribers: defaultdict[ConversationId, list[Subscriber]] = defaultdict(list)
        self._partial_texts: dict[ConversationId, list[Delta]] = {}
        self._store_failures: dict[ConversationId, tuple[int, StoreError]] = {}
        #: Turns that ended in this process.
        self.closed_turns: Counter[TurnOutcome] = Counter()

    @contextmanager
    def subscribe(
        self, conversation: ConversationId, *, live: bool = True
    ) -> Generator[Subscriber]:
        """
        Subscribe for the duration of the block; no event in it is missed.

        A subscriber that needs no pieces of responses (not ``live``) causes no model
        stream.
        """
        follower = Subscriber(live=live)
        self._subscribers[conversation].append(follower)
        try:
            yield follower
        finally:
            self._subscribers[conversation].remove(follower)
            if not self._subscribers[conversation]:
                del self._subscribers[conversation]

    def has_live_subscriber(self, conversation: ConversationId) -> bool:
        """Return whether a subscriber here wants the pieces of a response."""
        return any(follower.live for follower in self._subscribers.get(conversation, ()))

    def get_snapshot(self, conversation: ConversationId) -> Snapshot | None:
        """Return the pieces published since the last entry."""
        if (pieces := self._partial_texts.get(conversation)) is None:
            return None
        return Snapshot(
            conversation=conversation,
            turn=pieces[0].turn,
            after=pieces[0].after,
            text="".join(piece.text for piece in pieces),
        )

    def publish(
        self, conversation: ConversationId, event: ConversationEvent | StoreChanged
    ) -> None:
        match event:
            case Delta(kind=DeltaKind.TEXT):
                self._partial_texts.setdefault(conversation, []).append(event)
            case EntryAppended() | Retracted() | TurnStarted():
                self._partial_texts.pop(conversation, None)
            case TurnFinished(turn=turn):
                self._partial_texts.pop(conversation, None)
                if turn.outcome is not None:
                    self.closed_turns[turn.outcome] += 1
            case _:
                pass
        for follower in self._subscribers.get(conversation, ()):
            follower.put(event)

    def record_store_failure(self, conversation: ConversationId, error: StoreError) -> None:
        """Record another failure to store work, which is retried, and notify subscribers."""
        times, _ = self._store_failures.get(conversation, (0, error))
        self._store_failures[conversation] = (times + 1, error)
        self.publish(conversation, STORE_CHANGED)

    def clear_store_failure(self, conversation: ConversationId) -> None:
        """Record that work can be stored again."""
        self._store_failures.pop(conversation, None)

    def get_store_failure(self, conversation: ConversationId) -> tuple[int, StoreError | None]:
        """Return the number of consecutive failures to store work, and the last error."""
        return self._store_failures.get(conversation, (0, None))

    def publish_to_all(self, event: StoreChanged) -> None:
        for followers in self._subscribers.values():
            for follower in followers:
                follower.put(event)
