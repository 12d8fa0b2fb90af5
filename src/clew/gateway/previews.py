"""Which message shows an answer that is being made: kept until the answer takes its place."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.ids import TurnId
    from clew.core.route import RouteKey
    from clew.engine.deliveries import Deliveries


#: Routes whose newest turn is remembered.
_MOST = 1024


@dataclass(slots=True)
class _Shown:
    turn: TurnId
    message: str | None = None
    #: Texts of the turn that were handed over to be delivered.
    taken: int = 0


class Previews:
    """The previews of one account; those that a process left behind are found in the store."""

    def __init__(self, deliveries: Deliveries) -> None:
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
        return self._of(route, turn).message

    async def show(self, route: RouteKey, turn: TurnId, message: str) -> None:
        self._of(route, turn).message = message
        await self._deliveries.keep_preview(route, turn, message)

    async def take(self, route: RouteKey, turn: TurnId) -> str | None:
        """The message whose place a text of the turn takes, if one is shown."""
        shown = self._of(route, turn)
        message, shown.message = shown.message, None
        shown.taken += 1
        if message is None:
            kept = await self._deliveries.preview(route)
            message = kept.message if kept is not None and kept.turn == turn else None
        return message

    async def leave(self, route: RouteKey, turn: TurnId) -> str | None:
        """The turn is over without a text: its message stays, and is returned."""
        shown = self._shown.pop(route, None)
        self._locks.pop(route, None)
        if shown is None or shown.turn != turn or shown.message is None:
            return None
        await self._deliveries.drop_preview(route, shown.message)
        return shown.message
