"""Rate-limited access to one platform account; waits that the platform asks for are stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, cast

import structlog

from clew.core.route import Route
from clew.errors import ChannelError, NotSent, OutcomeUnknown, StoreError, Throttled
from clew.gateway.rate_limiter import RateLimiter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.core.access import ChannelAccount
    from clew.core.channel_events import ButtonPressed, IncomingFile
    from clew.engine.deliveries import DeliveryQueue
    from clew.gateway.channel import Channel
    from clew.gateway.timer import Timer

log = structlog.get_logger(__name__)
T = TypeVar("T")

#: Seconds after which the outcome of a call is unknown.
CALL_TIMEOUT = 60.0
#: Seconds before each further attempt to fetch a file: its message waits for a minute at most.
_FETCH_PAUSES = (0.5, 1.0, 2.0, 4.0)
#: Seconds of throttling up to which a look-up waits and retries.
_MAX_LOOKUP_WAIT = 30.0


class PlatformClient:
    """Rate-limited calls on one account of a platform."""

    def __init__(
        self, channel: Channel, account: ChannelAccount, deliveries: DeliveryQueue, timer: Timer
    ) -> None:
        self.channel, self.account = channel, account
        self._deliveries, self._timer = deliveries, timer
        can = channel.capabilities
        self.rate_limiter = RateLimiter(
            timer, chat_pause=can.chat_pause, account_pause=can.account_pause
        )
        # They belong to no chat: throttling of a look-up pauses only look-ups.
        self._lookup_route = Route(platform=channel.platform, chat="look-ups")
        channel.use_rate_limit(self.lookup)
        self._warned_missing_id = False

    async def restore_pauses(self) -> None:
        """Restore the waits that the platform asked for before a restart."""
        now = self._timer.epoch_millis()
        for chat, until in (await self._deliveries.list_pauses(self.account, after=now)).items():
            self.rate_limiter.pause(chat or None, (until - now) / 1000)

    async def send_chunk(
        self, route: Route, chunk: str, *, key: str, content: bytes | None = None
    ) -> str | None:
        """
        Send a chunk, or the ``content`` of its file; call it right after ``rate_limiter.acquire``.

        :return: the platform's id; ``None`` if the channel violates its contract
        """
        call = (
            self.channel.send(route, chunk, key=key)
            if content is None
            else self.channel.send_file(route, chunk, content, key=key)
        )
        sent = await self._call_with_timeout(route, call)
        # A third-party channel may return anything.
        given = cast("object", sent)
        if isinstance(given, str) and given:
            return given
        if isinstance(given, int):
            return str(given)
        if not self._warned_missing_id:
            self._warned_missing_id = True
            log.error("channel_gives_no_id", channel=self.account.channel, given=repr(given))
        return None

    async def edit_message(self, route: Route, message: str, chunk: str) -> None:
        """Edit a message; call it right after ``rate_limiter.acquire``."""
        await self._call_with_timeout(route, self.channel.edit(route, message, chunk))

    async def find_message(self, route: Route, chunk: str, *, key: str) -> str | None:
        await self.rate_limiter.acquire(route)
        return await self._call_with_timeout(
            route, self.channel.find_message(route, chunk, key=key)
        )

    async def send_untracked(self, route: Route, chunk: str, *, key: str) -> None:
        """
        Send a message that is stored nowhere, once the rate limit allows it.

        :raises ChannelError: as the channel's ``send``
        """
        await self.rate_limiter.acquire(route)
        await self._call_with_timeout(route, self.channel.send(route, chunk, key=key))

    async def show_typing(self, route: Route) -> None:
        """Show the typing indicator, unless a more important call is due."""
        if self.channel.capabilities.typing and self.rate_limiter.try_acquire(route):
            await self._send_best_effort(route, self.channel.show_typing(route))

    async def answer_button(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        """Answer a pressed button at once, unless the platform takes no calls."""
        if not self.rate_limiter.pause_remaining(pressed.route.chat):
            call = self.channel.answer_button(pressed, text, closed=closed, became=became)
            await self._send_best_effort(pressed.route, call)

    async def fetch_file(self, route: Route, file: IncomingFile, *, most: int) -> bytes:
        """Return the content of a file; after a passing failure, try again."""
        for pause in _FETCH_PAUSES:
            try:
                return await self._fetch_once(route, file, most=most)
            except (NotSent, OutcomeUnknown, Throttled) as error:
                log.info("file_fetched_again", chat=route.chat, error=str(error))
            await asyncio.sleep(pause)
        return await self._fetch_once(route, file, most=most)

    async def _fetch_once(self, route: Route, file: IncomingFile, *, most: int) -> bytes:
        await self.rate_limiter.acquire(route)
        return await self._call_with_timeout(route, self.channel.fetch_file(file, most=most))

    async def lookup(self, call: Callable[[], Awaitable[T]]) -> T:
        """
        Make a look-up for a channel; retry it after a short throttling.

        :raises ChannelError: as the call
        """
        while True:
            await self.rate_limiter.acquire(self._lookup_route)
            try:
                return await self._call_with_timeout(self._lookup_route, call())
            except Throttled as error:
                if error.seconds > _MAX_LOOKUP_WAIT:
                    raise

    async def _send_best_effort(self, route: Route, call: Awaitable[object]) -> None:
        try:
            await self._call_with_timeout(route, call)
        except ChannelError as error:
            log.info("call_left_out", chat=route.chat, error=str(error))

    async def _call_with_timeout(self, route: Route, call: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                return await call
        except TimeoutError:
            raise OutcomeUnknown(f"the platform did not answer in {CALL_TIMEOUT:g} s") from None
        except Throttled as error:
            await self._store_pause(route, error)
            raise

    async def _store_pause(self, route: Route, asked: Throttled) -> None:
        # Paused before the first await: no other call gets through meanwhile.
        chat = None if asked.account else route.chat
        self.rate_limiter.pause(chat, asked.seconds)
        log.info("throttled", chat=chat, seconds=asked.seconds)
        until = self._timer.epoch_millis() + int(asked.seconds * 1000)
        try:
            await self._deliveries.pause_chat(self.account, chat or "", until=until)
        except StoreError as error:
            log.warning("wait_not_kept", chat=chat, error=str(error))
