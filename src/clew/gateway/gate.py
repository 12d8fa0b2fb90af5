"""
The rate gate of one account: every call passes it.

A platform's wait closes it for one chat, or for the whole account, for as long as it says; nobody
else waits for that. Calls that may be left out do not wait: they pass at once or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.route import Route
    from clew.gateway.timer import Timer

#: Longest sleep before the gate is looked at again: a wait may have been made longer.
_LOOK = 60.0
#: A chat that was not called for so long needs no place in the table.
_KEPT = 4096


class Gate:
    """Says when a chat may be called."""

    def __init__(
        self, timer: Timer, *, chat_pause: Mapping[str, float] | None, account_pause: float
    ) -> None:
        self._timer = timer
        self._chat_pause, self._account_pause = chat_pause or {}, account_pause
        self._held: dict[str, float] = {}
        self._held_all = 0.0
        self._next: dict[str, float] = {}
        self._next_of_all = 0.0

    def hold(self, chat: str | None, seconds: float) -> None:
        """Let nobody call a chat (``None``: any chat) for so long; never shortens a wait."""
        until = self._timer.monotonic() + seconds
        if chat is None:
            self._held_all = max(self._held_all, until)
        else:
            self._held[chat] = max(self._held.get(chat, 0.0), until)

    def held_for(self, chat: str) -> float:
        """Seconds for which the platform takes no calls to a chat."""
        until = max(self._held_all, self._held.get(chat, 0.0))
        return max(0.0, until - self._timer.monotonic())

    def held(self) -> Mapping[str, float]:
        """The chats that are held, each with the seconds that are left; "" is every one."""
        now = self._timer.monotonic()
        self._held = {chat: until for chat, until in self._held.items() if until > now}
        every = {"": self._held_all - now} if self._held_all > now else {}
        return {**every, **{chat: until - now for chat, until in self._held.items()}}

    def _wait(self, chat: str) -> float:
        now = self._timer.monotonic()
        free = max(self._held_all, self._held.get(chat, 0.0), self._next.get(chat, 0.0))
        return max(0.0, free - now)

    def _reserve(self, route: Route) -> float:
        """Take the account's next moment for a call to a chat; seconds until it comes."""
        now = self._timer.monotonic()
        at = max(now, self._next_of_all)
        if len(self._next) > _KEPT:
            self._next = {chat: free for chat, free in self._next.items() if free > now}
        self._next[route.chat] = at + self._chat_pause.get(route.kind or "", 0.0)
        self._next_of_all = at + self._account_pause
        return at - now

    async def enter(self, route: Route) -> None:
        """Wait until a chat may be called, in the order of asking; call it at once then."""
        while True:
            while (wait := self._wait(route.chat)) > 0:
                await self._timer.sleep(min(wait, _LOOK))
            if (wait := self._reserve(route)) > 0:
                await self._timer.sleep(wait)
            if not self.held_for(route.chat):
                return

    async def until_open(self, route: Route) -> None:
        """Wait until the platform takes calls to a chat; does not count as one."""
        while (wait := self.held_for(route.chat)) > 0:
            await self._timer.sleep(min(wait, _LOOK))

    def try_enter(self, route: Route) -> bool:
        """Pass if a chat may be called now; else the call is to be left out."""
        if self._wait(route.chat) > 0 or self._next_of_all > self._timer.monotonic():
            return False
        self._reserve(route)
        return True
