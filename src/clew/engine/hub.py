"""The hub: what happens in this process is told at once to those who follow a conversation here."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from clew.core.events import Event
    from clew.core.ids import ConversationId


class Changed:
    """Something in the store may have changed: look there."""


CHANGED = Changed()

#: Pieces that one slow follower may fall behind by; what is left out is in the log.
_MOST = 1000


class Follower:
    """
    One follower's queue.

    It never makes a turn wait: when it is full, what is provisional is left out, and ``CHANGED``
    makes the follower read the rest from the log.
    """

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event | Changed] = asyncio.Queue()
        self._pending_change = False

    def put(self, event: Event | Changed) -> None:
        if self._queue.qsize() < _MOST:
            self._queue.put_nowait(event)
        elif not self._pending_change:
            self._pending_change = True
            self._queue.put_nowait(CHANGED)

    async def get(self) -> Event | Changed:
        event = await self._queue.get()
        if event is CHANGED:
            self._pending_change = False
        return event


class Hub:
    """Followers by conversation."""

    def __init__(self) -> None:
        self._followers: defaultdict[ConversationId, list[Follower]] = defaultdict(list)

    @contextmanager
    def follow(self, conversation: ConversationId) -> Generator[Follower]:
        """Follow from now on; nothing that happens while the block lasts is missed."""
        follower = Follower()
        self._followers[conversation].append(follower)
        try:
            yield follower
        finally:
            self._followers[conversation].remove(follower)
            if not self._followers[conversation]:
                del self._followers[conversation]

    def followed(self, conversation: ConversationId) -> bool:
        """Whether anybody here would see pieces of a response."""
        return conversation in self._followers

    def publish(self, conversation: ConversationId, event: Event | Changed) -> None:
        for follower in self._followers.get(conversation, ()):
            follower.put(event)

    def publish_to_all(self, event: Changed) -> None:
        for followers in self._followers.values():
            for follower in followers:
                follower.put(event)
