"""Preview messages: the message that shows a growing answer, until the answer replaces it."""

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


#: Routes for which the newest turn is remembered.
_MAX_ROUTES = 1024


class PreviewTarget(enum.Enum):
    """The place in which a preview can be shown."""

    NEW_MESSAGE = "new"  #: in a message still to be sent
    EXISTING_MESSAGE = "there"  #: in a message already sent
    UNAVAILABLE = "nowhere"  #: nowhere at present


@dataclass(slots=True)
class _PreviewState:
    turn: TurnId
    message: str | None = None
    #: Texts of the turn that were handed over for delivery.
    delivered_texts: int = 0


class PreviewRegistry:
    """The previews of one account; those that another process left are found in the store."""

    def __init__(self, deliveries: DeliveryQueue) -> None:
        self._deliveries = deliveries
        self._shown: OrderedDict[RouteKey, _PreviewState] = OrderedDict()
        self._locks: defaultdict[RouteKey, asyncio.Lock] = defaultdict(asyncio.Lock)

    def get_lock(self, route: RouteKey) -> asyncio.Lock:
        """Return the lock to hold while a preview is sent, edited or replaced by its answer."""
        return self._locks[route]

    def _get_state(self, route: RouteKey, turn: TurnId) -> _PreviewState:
        shown = self._shown.get(route)
        if shown is None or shown.turn != turn:
            shown = self._shown[route] = _PreviewState(turn)
            self._shown.move_to_end(route)
            self._evict_oldest()
        return shown

    def _evict_oldest(self) -> None:
        while len(self._shown) > _MAX_ROUTES:
            route, _ = self._shown.popitem(last=False)
            if not self._locks[route].locked():
                del self._locks[route]

    def can_show(self, route: RouteKey, turn: TurnId, *, told: int) -> bool:
        """Return whether the text after the first ``told`` texts is not handed over yet."""
        return self._get_state(route, turn).delivered_texts == told

    def get_message(self, route: RouteKey, turn: TurnId) -> str | None:
        """Return the message that shows the turn's answer, as far as this process knows."""
        return self._get_state(route, turn).message

    async def reserve_target(self, route: RouteKey, turn: TurnId, key: str) -> PreviewTarget:
        """Find where to show the turn's answer; a new message is recorded before it is sent."""
        kept = await self._deliveries.get_preview(route)
        if kept is not None and kept.turn == turn:
            # Left by an earlier process, or its sending failed.
            self._get_state(route, turn).message = kept.message
            return (
                PreviewTarget.UNAVAILABLE
                if kept.message is None
                else PreviewTarget.EXISTING_MESSAGE
            )
        new = await self._deliveries.begin_preview(route, turn, key)
        return PreviewTarget.NEW_MESSAGE if new else PreviewTarget.UNAVAILABLE

    async def record_sent(self, route: RouteKey, turn: TurnId, message: str) -> None:
        """Record that the platform has the message."""
        self._get_state(route, turn).message = message
        await self._deliveries.store_preview(route, turn, message)

    async def drop_unsent(self, route: RouteKey, turn: TurnId) -> None:
        """Record that the message was certainly not sent."""
        await self._deliveries.discard_preview(route, turn)

    async def take_message(self, route: RouteKey, turn: TurnId) -> AnswerPreview | None:
        """Return the preview that a text of the turn replaces, if one is or may be shown."""
        shown = self._get_state(route, turn)
        shown.message = None
        shown.delivered_texts += 1
        kept = await self._deliveries.get_preview(route)
        return kept if kept is not None and kept.turn == turn else None
