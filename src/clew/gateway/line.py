"""The one way to a platform: each call passes the gate, and what the platform asks for is kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, cast

import structlog

from clew.core.route import Route
from clew.errors import ChannelError, OutcomeUnknown, StoreError, Throttled
from clew.gateway.gate import Gate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.core.chat import ButtonPressed, IncomingFile
    from clew.core.people import ChannelAccount
    from clew.engine.deliveries import DeliveryQueue
    from clew.gateway.channel import Channel
    from clew.gateway.timer import Timer

log = structlog.get_logger(__name__)
T = TypeVar("T")

#: No call takes longer: then its outcome is unknown.
LONGEST_CALL = 60.0
#: Seconds of a platform's wait after which a look-up is made again, not given up.
_WAITED_FOR = 30.0


class Line:
    """Calls on one account of a platform."""

    def __init__(
        self, channel: Channel, account: ChannelAccount, deliveries: DeliveryQueue, timer: Timer
    ) -> None:
        self.channel, self.account = channel, account
        self._deliveries, self._timer = deliveries, timer
        can = channel.capabilities
        self.gate = Gate(timer, chat_pause=can.chat_pause, account_pause=can.account_pause)
        # They belong to no chat: what a platform asks to wait holds only look-ups.
        self._look_ups = Route(platform=channel.platform, chat="look-ups")
        channel.passing = self.look
        self._told_of_no_id = False

    async def remember(self) -> None:
        """Go on waiting for what a platform asked before a restart."""
        now = self._timer.millis()
        for chat, until in (await self._deliveries.list_pauses(self.account, after=now)).items():
            self.gate.hold(chat or None, (until - now) / 1000)

    async def send(self, route: Route, chunk: str, *, key: str) -> str | None:
        """
        As the channel's; call it right after ``gate.enter``.

        :return: the platform's id; ``None`` where the channel breaks its contract and gives none
        """
        sent = await self._called(route, self.channel.send(route, chunk, key=key))
        # Somebody else's channel may return anything.
        given = cast("object", sent)
        if isinstance(given, str) and given:
            return given
        if isinstance(given, int):
            return str(given)
        if not self._told_of_no_id:
            self._told_of_no_id = True
            log.error("channel_gives_no_id", channel=self.account.channel, given=repr(given))
        return None

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        """As the channel's; call it right after ``gate.enter``."""
        await self._called(route, self.channel.edit(route, message, chunk))

    async def find(self, route: Route, chunk: str, *, key: str) -> str | None:
        await self.gate.enter(route)
        return await self._called(route, self.channel.find(route, chunk, key=key))

    async def tell(self, route: Route, chunk: str, *, key: str) -> None:
        """
        Send what is stored nowhere, when its turn has come.

        :raises ChannelError: as the channel's ``send``
        """
        await self.gate.enter(route)
        await self._called(route, self.channel.send(route, chunk, key=key))

    async def typing(self, route: Route) -> None:
        """Show that an answer is being made, where nothing more important is in the way."""
        if self.channel.capabilities.typing and self.gate.try_enter(route):
            await self._left_out(route, self.channel.typing(route))

    async def answer(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        """Say at once what came of a press, unless the platform takes no calls."""
        if not self.gate.held_for(pressed.route.chat):
            call = self.channel.answer(pressed, text, closed=closed, became=became)
            await self._left_out(pressed.route, call)

    async def fetch(self, route: Route, file: IncomingFile, *, most: int) -> bytes:
        await self.gate.enter(route)
        return await self._called(route, self.channel.fetch(file, most=most))

    async def look(self, call: Callable[[], Awaitable[T]]) -> T:
        """
        A look-up that a channel makes by itself, again where the platform asked to wait shortly.

        :raises ChannelError: as the call
        """
        while True:
            await self.gate.enter(self._look_ups)
            try:
                return await self._called(self._look_ups, call())
            except Throttled as error:
                if error.seconds > _WAITED_FOR:
                    raise

    async def _left_out(self, route: Route, call: Awaitable[object]) -> None:
        try:
            await self._called(route, call)
        except ChannelError as error:
            log.info("call_left_out", chat=route.chat, error=str(error))

    async def _called(self, route: Route, call: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(LONGEST_CALL):
                return await call
        except TimeoutError:
            raise OutcomeUnknown(f"the platform did not answer in {LONGEST_CALL:g} s") from None
        except Throttled as error:
            await self._hold(route, error)
            raise

    async def _hold(self, route: Route, asked: Throttled) -> None:
        # Closed before the first wait: nobody else calls meanwhile.
        chat = None if asked.account else route.chat
        self.gate.hold(chat, asked.seconds)
        log.info("throttled", chat=chat, seconds=asked.seconds)
        until = self._timer.millis() + int(asked.seconds * 1000)
        try:
            await self._deliveries.pause_chat(self.account, chat or "", until=until)
        except StoreError as error:
            log.warning("wait_not_kept", chat=chat, error=str(error))
