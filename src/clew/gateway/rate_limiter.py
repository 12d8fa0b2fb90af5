"""
The rate limiter of one account; every call passes it.

A wait that the platform asks for pauses one chat, or the whole account; other chats go on.
Optional calls do not wait: they pass at once or are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.route import Route
    from clew.gateway.timer import Timer

#: Longest sleep before the pause is checked again: it may have been extended.
_MAX_SLEEP = 60.0
#: Chats in the table before expired ones are removed.
_MAX_CHATS = 4096


class RateLimiter:
    """Decides when a chat may be called."""

    def __init__(
        self, timer: Timer, *, chat_pause: Mapping[str, float] | None, account_pause: float
    ) -> None:
        self._timer = timer
        self._chat_pause, self._account_pause = chat_pause or {}, account_pause
        self._paused_until: dict[str, float] = {}
        self._all_paused_until = 0.0
        self._next_free: dict[str, float] = {}
        self._account_next_free = 0.0

    def pause(self, chat: str | None, seconds: float) -> None:
        """Pause calls to a chat (``None``: to all chats); never shortens a pause."""
        until = self._timer.monotonic() + seconds
        if chat is None:
            self._all_paused_until = max(self._all_paused_until, until)
        else:
            self._paused_until[chat] = max(self._paused_until.get(chat, 0.0), until)

    def pause_remaining(self, chat: str) -> float:
        """Return the seconds for which the platform takes no calls to a chat."""
        until = max(self._all_paused_until, self._paused_until.get(chat, 0.0))
        return max(0.0, until - self._timer.monotonic())

    def _seconds_until_free(self, chat: str) -> float:
        now = self._timer.monotonic()
        free = max(
            self._all_paused_until,
            self._paused_until.get(chat, 0.0),
            self._next_free.get(chat, 0.0),
        )
        return max(0.0, free - now)

    def _reserve_slot(self, route: Route) -> float:
        """Reserve the account's next slot for a chat; return the seconds until it comes."""
        now = self._timer.monotonic()
        at = max(now, self._account_next_free)
        if len(self._next_free) > _MAX_CHATS:
            self._next_free = {chat: free for chat, free in self._next_free.items() if free > now}
        self._next_free[route.chat] = at + self._chat_pause.get(route.kind or "", 0.0)
        self._account_next_free = at + self._account_pause
        return at - now

    async def acquire(self, route: Route) -> None:
        """Wait until a chat may be called, in order of arrival; make the call at once then."""
        while True:
            while (wait := self._seconds_until_free(route.chat)) > 0:
                await self._timer.sleep(min(wait, _MAX_SLEEP))
            if (wait := self._reserve_slot(route)) > 0:
                await self._timer.sleep(wait)
            if not self.pause_remaining(route.chat):
                return

    async def wait_until_open(self, route: Route) -> None:
        """Wait until the platform takes calls to a chat, without using up a slot."""
        while (wait := self.pause_remaining(route.chat)) > 0:
            await self._timer.sleep(min(wait, _MAX_SLEEP))

    def try_acquire(self, route: Route) -> bool:
        """Reserve a slot if a chat may be called now; otherwise the call is to be dropped."""
        if (
            self._seconds_until_free(route.chat) > 0
            or self._account_next_free > self._timer.monotonic()
        ):
            return False
        self._reserve_slot(route)
        return True
