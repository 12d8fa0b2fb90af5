"""Which message shows an answer that is being made: kept until the answer takes its place."""

from __future__ import annotations

import asyncio
import enum
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.ids import TurnId
    from clew.core.route import RouteKey
    from clew.engine.deliveries import AnswerPreview, DeliveryQueue


#: Routes whose newest turn is remembered.
_MOST = 1024


class Place(enum.Enum):
    """Where an answer that is being made can be shown."""

    NEW = "new"  #: in a message that is to be sent
    THERE = "there"  #: in a message that was sent
    NOWHERE = "nowhere"  #: not now


@dataclass(slots=True)
class _Shown:
    turn: TurnId
    message: str | None = None
    #: Texts of the turn that were handed over to be delivered.
    taken: int = 0


class Previews:
    """The previews of one account; those that a process left behind are found in the store."""

    def __init__(self, deliveries: DeliveryQueue) -> None:
        self._deliveries = deliveries
        self._shown: OrderedDict[RouteKey, _Shown] = OrderedDict()
        self._locks: defaultdict[RouteKey, asyncio.Lock] = defaultdict(asyncio.Lock)

    def lock(self, route: RouteKey) -> asyncio.Lock:
        """Held while a preview is sent or changed, and while an answer takes its place."""
        return self._locks[route]

    def _of(self, route: RouteKey, turn: TurnId) -> _Shown:
        shown = self._shown.get(route)
        if shown is None or shown.turn != turn:
            shown = self._shown[route] = _Shown(turn)
            self._shown.move_to_end(route)
            self._forget_the_oldest()
        return shown

    def _forget_the_oldest(self) -> None:
        while len(self._shown) > _MOST:
            route, _ = self._shown.popitem(last=False)
            if not self._locks[route].locked():
                del self._locks[route]

    def may_show(self, route: RouteKey, turn: TurnId, *, told: int) -> bool:
        """Whether the text after ``told`` texts of a turn was not handed over yet."""
        return self._of(route, turn).taken == told

    def message(self, route: RouteKey, turn: TurnId) -> str | None:
        """The message in which the turn's answer is shown, as far as this process knows."""
        return self._of(route, turn).message

    async def begin(self, route: RouteKey, turn: TurnId, key: str) -> Place:
        """Find where the turn's answer may be shown; a new message is remembered before it is."""
        kept = await self._deliveries.get_preview(route)
        if kept is not None and kept.turn == turn:
            # Of a process before this one, or lost on its way.
            self._of(route, turn).message = kept.message
            return Place.NOWHERE if kept.message is None else Place.THERE
        new = await self._deliveries.begin_preview(route, turn, key)
        return Place.NEW if new else Place.NOWHERE

    async def show(self, route: RouteKey, turn: TurnId, message: str) -> None:
        """The platform has the message."""
        self._of(route, turn).message = message
        await self._deliveries.store_preview(route, turn, message)

    async def unsent(self, route: RouteKey, turn: TurnId) -> None:
        """The message was certainly not sent."""
        await self._deliveries.discard_preview(route, turn)

    async def take(self, route: RouteKey, turn: TurnId) -> AnswerPreview | None:
        """The message whose place a text of the turn takes, if one is shown, or may be."""
        shown = self._of(route, turn)
        shown.message = None
        shown.taken += 1
        kept = await self._deliveries.get_preview(route)
        return kept if kept is not None and kept.turn == turn else None
