"""The channel: own polling, so that an update is confirmed only once it is stored."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

import structlog

from clew.core.chat import IgnoredEvent
from clew.errors import NotDelivered, SettingsError
from clew.gateway.channel import Capabilities, Channel, ChannelConfig
from clew.gateway.channels.telegram import codec
from clew.gateway.channels.telegram.transport import READ, Api, translated
from clew.gateway.ignored_events import IgnoredEvents

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from clew.core.chat import ButtonPressed, ChannelEvent, IncomingFile, OutboundMessage
    from clew.core.route import Route

log = structlog.get_logger(__name__)

BASE_URL = "https://api.telegram.org/bot"
#: Seconds for which Telegram holds a poll back while nothing happens.
POLL = 25

#: The keys of its table that only this channel knows.
OPTIONS: frozenset[str] = frozenset()

CAPABILITIES = Capabilities(
    longest=4096,
    unit="UTF-16 code units",
    markup="entities",
    edits=True,
    threads=True,
    buttons=True,
    typing=True,
    files=True,
    # Telegram's own advice: one message a second in a chat, twenty a minute in a group.
    chat_pause={"dm": 1.0, "group": 3.0, "channel": 3.0},
    account_pause=1 / 30,
)


def open_channel(config: ChannelConfig) -> Channel:
    """
    What the entry point names.

    :raises SettingsError: if there is no usable token
    """
    token = "" if config.token is None else config.token.reveal()
    bot, colon, _ = token.partition(":")
    if not (colon and bot.isascii() and bot.isdigit()):
        raise SettingsError(
            f"channels.{config.name}.token is no token of a Telegram bot, which looks like "
            "123456:ABC…: @BotFather shows yours"
        )
    return TelegramChannel(config, token, bot)


class TelegramChannel(Channel):
    """One bot."""

    platform = codec.PLATFORM

    def __init__(self, config: ChannelConfig, token: str, bot: str) -> None:
        self.account = bot
        self.capabilities = CAPABILITIES
        self._config = config
        self._api = Api.of(token, config.base_url or BASE_URL)
        self._me = codec.Me(id=int(bot), username="", label=config.label)
        self._ignored = IgnoredEvents(config.name)

    async def __aenter__(self) -> Self:
        try:
            await self._connect()
        except BaseException:
            # Whoever could not enter does not leave: nobody else would close the connections.
            await self._api.shutdown()
            raise
        return self

    async def _connect(self) -> None:
        with translated():
            await self._api.initialize()
        bot = self._api.bot
        self._me = codec.Me(id=bot.id, username=bot.username or "", label=self._config.label)
        # Telegram gives messages to a web hook or to those who poll, not to both.
        await self._api.call("deleteWebhook", {})
        if self._config.commands:
            listed = [
                {"command": name, "description": says} for name, says in self._config.commands
            ]
            await self._api.call("setMyCommands", {"commands": listed})

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._api.shutdown()

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        # Without an offset Telegram begins with the first update that was not confirmed.
        after: int | None = None
        while True:
            asked = {"timeout": POLL, "allowed_updates": list(codec.UPDATES)}
            if after is not None:
                asked["offset"] = after + 1
            updates = await self._api.call("getUpdates", asked, read=POLL + READ)
            yield [event for update in updates if (event := self._parsed(update)) is not None]
            # Asked for more: these are stored.
            after = max((update["update_id"] for update in updates), default=after)

    def _parsed(self, update: dict[str, object]) -> ChannelEvent | None:
        try:
            event = codec.parse_update(update, self._me)
        except (KeyError, TypeError, ValueError, AttributeError):
            # Passed over: told again and again, it would keep all later ones away.
            log.exception("update_not_understood", update=update.get("update_id"))
            return None
        if isinstance(event, IgnoredEvent):
            self._ignored.log(event)
            return None
        return event

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return codec.render(message)

    def repeated(self, chunk: str) -> str:
        return codec.repeated(chunk)

    def plain(self, chunk: str) -> str:
        return codec.plain(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        sent = await self._api.call("sendMessage", codec.address(route) | codec.parameters(chunk))
        return str(sent["message_id"])

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        parameters = codec.parameters(chunk)
        parameters.pop("reply_parameters", None)
        target = {"chat_id": int(route.chat), "message_id": int(message)}
        try:
            await self._api.call("editMessageText", target | parameters)
        except NotDelivered as error:
            if "message is not modified" not in str(error).lower():
                raise

    async def typing(self, route: Route) -> None:
        await self._api.call("sendChatAction", codec.address(route) | {"action": "typing"})

    async def answer(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        query = pressed.event.removeprefix("press:")
        told = {"callback_query_id": query, "text": text[:200]}
        with suppress(NotDelivered):  # it is too old: its buttons go all the same
            await self._api.call("answerCallbackQuery", told)
        if closed:
            target = {"chat_id": pressed.route.chat, "message_id": pressed.message}
            shown = codec.outcome(became) if became else {}
            try:
                await self._api.call("editMessageReplyMarkup", target | shown)
            except NotDelivered as error:
                if "message is not modified" not in str(error).lower():
                    raise

    async def fetch(self, file: IncomingFile, *, most: int) -> bytes:
        found = await self._api.call("getFile", {"file_id": file.id})
        if found.get("file_size", 0) > most:
            raise NotDelivered(f"the file has {found['file_size']:,} bytes")
        content = await self._api.download(found["file_path"])
        if len(content) > most:
            raise NotDelivered(f"the file has {len(content):,} bytes")
        return content
