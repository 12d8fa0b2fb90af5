"""The 24-hour window: who wrote when, and who was asked to write by a template."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

from clew.core.channel_events import ButtonPressed, MessageReceived
from clew.errors import NotDelivered, Throttled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.core.channel_events import ChannelEvent
    from clew.gateway.channel import ChannelStorage

#: Key in the channel storage: when each person was asked.
_STORED: Final = "asked"
#: Seconds after a message in which the agent may answer freely: an hour less than a day, since
#: clocks differ and an answer takes its time.
_OPEN_FOR: Final = 23 * 3600.0
#: Seconds between two looks whether the person has written, and for which a message waits.
LOOK_AGAIN: Final = 20.0
_GIVE_UP_AFTER: Final = 7 * 24 * 3600.0
_MAX_CHATS: Final = 10_000
_WAITING: Final = (
    "it waits until the person writes: WhatsApp's 24 hours are over, and the template was sent"
)


class WaitsForPerson(Throttled):
    """Message that waits until the person writes, as the template asks."""

    def __init__(self) -> None:
        super().__init__(LOOK_AGAIN)
        self.args = (_WAITING,)


class ConversationWindows:
    """The windows of the chats of one number."""

    def __init__(self, storage: ChannelStorage) -> None:
        self._storage = storage
        self._heard: dict[str, float] = {}
        self._asked: dict[str, float] = {}

    async def load(self) -> None:
        if (stored := await self._storage.get(_STORED)) is not None:
            self._asked = json.loads(stored)

    async def note_events(self, events: Iterable[ChannelEvent]) -> None:
        """Note who wrote: their windows are open."""
        answered = False
        for event in events:
            if isinstance(event, (MessageReceived, ButtonPressed)):
                self._note_heard(event.route.chat)
                answered |= self._asked.pop(event.route.chat, None) is not None
        if answered:
            await self._store()

    def _note_heard(self, chat: str) -> None:
        self._heard.pop(chat, None)
        self._heard[chat] = time.time()
        if len(self._heard) > _MAX_CHATS:
            del self._heard[next(iter(self._heard))]

    def is_open(self, chat: str) -> bool:
        """Return whether the person certainly wrote a short while ago."""
        return time.time() - self._heard.get(chat, 0.0) < _OPEN_FOR

    async def note_asked(self, chat: str) -> None:
        self._asked[chat] = time.time()
        await self._store()

    async def check_asked(self, chat: str) -> None:
        """
        Let a message wait for a person who was asked to write and has not.

        :raises WaitsForPerson: if they were asked
        :raises NotDelivered: if that was a week ago
        """
        if (asked := self._asked.get(chat)) is None:
            return
        if time.time() - asked < _GIVE_UP_AFTER:
            raise WaitsForPerson
        del self._asked[chat]
        await self._store()
        raise NotDelivered("the person did not write within 7 days of the template")

    async def _store(self) -> None:
        await self._storage.put(_STORED, json.dumps(self._asked))
