"""The Telegram channel: polls by itself, so that an update is confirmed only once stored."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

import structlog

from clew.core.channel_events import IgnoredEvent
from clew.errors import NotDelivered, SettingsError
from clew.gateway.channel import Channel, ChannelCapabilities, ChannelConfig
from clew.gateway.channels.telegram import codec
from clew.gateway.channels.telegram.transport import READ_TIMEOUT, TelegramApi
from clew.gateway.http import UPLOAD_TIMEOUT
from clew.gateway.ignored_events import IgnoredEventLog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from clew.core.channel_events import ButtonPressed, ChannelEvent, IncomingFile, OutboundMessage
    from clew.core.route import Route
    from clew.core.sent_files import SentFile

log = structlog.get_logger(__name__)

BASE_URL = "https://api.telegram.org/bot"
#: Seconds of a long poll without updates.
POLL_TIMEOUT = 25

#: The channel's own settings keys.
OPTIONS: frozenset[str] = frozenset()

CAPABILITIES = ChannelCapabilities(
    max_length=4096,
    unit="UTF-16 code units",
    markup="entities",
    edits=True,
    threads=True,
    buttons=True,
    documents=True,
    # As documents: what is sent as a photo is compressed again.
    max_file_bytes=50_000_000,
    typing=True,
    files=True,
    ordered_ids=True,
    # Telegram's own advice: one message per second in a chat, twenty per minute in a group.
    chat_pause={"dm": 1.0, "group": 3.0, "channel": 3.0},
    account_pause=1 / 30,
)


def open_channel(config: ChannelConfig) -> Channel:
    """
    Create the channel; the entry point names this function.

    :raises SettingsError: if there is no usable token
    """
    token = "" if config.token is None else config.token.reveal()
    bot, colon, _ = token.partition(":")
    if not (colon and bot.isascii() and bot.isdigit()):
        raise SettingsError(
            f"channels.{config.name}.token is not the token of a Telegram bot, which looks like "
            "123456:ABC…: @BotFather shows yours"
        )
    return TelegramChannel(config, token, bot)


class TelegramChannel(Channel):
    """The channel of one bot."""

    platform = codec.PLATFORM

    def __init__(self, config: ChannelConfig, token: str, bot: str) -> None:
        self.account = bot
        self.capabilities = CAPABILITIES
        self._config = config
        self._api = TelegramApi(token, config.base_url or BASE_URL)
        self._identity = codec.TelegramIdentity(id=int(bot), username="", label=config.label)
        self._ignored = IgnoredEventLog(config.name)

    async def __aenter__(self) -> Self:
        try:
            await self._connect()
        except BaseException:
            # A failed __aenter__ is not followed by __aexit__: close the connections here.
            await self._api.aclose()
            raise
        return self

    async def _connect(self) -> None:
        bot = await self._api.call_api("getMe", {})
        self._identity = codec.TelegramIdentity(
            id=bot["id"], username=bot.get("username") or "", label=self._config.label
        )
        # Telegram delivers updates to a webhook or to polling, never to both.
        await self._api.call_api("deleteWebhook", {})
        if self._config.commands:
            listed = [
                {"command": name, "description": says} for name, says in self._config.commands
            ]
            await self._api.call_api("setMyCommands", {"commands": listed})

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._api.aclose()

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        # Without an offset Telegram starts with the first unconfirmed update.
        after: int | None = None
        while True:
            asked = {"timeout": POLL_TIMEOUT, "allowed_updates": list(codec.UPDATE_TYPES)}
            if after is not None:
                asked["offset"] = after + 1
            updates = await self._api.call_api(
                "getUpdates", asked, read=POLL_TIMEOUT + READ_TIMEOUT
            )
            yield [event for update in updates if (event := self._parse_update(update)) is not None]
            # The next batch was requested: these are stored.
            after = max((update["update_id"] for update in updates), default=after)

    def _parse_update(self, update: dict[str, object]) -> ChannelEvent | None:
        try:
            event = codec.parse_update(update, self._identity)
        except (KeyError, TypeError, ValueError, AttributeError):
            # Skipped: redelivered for ever, it would block all later ones.
            log.exception("update_not_understood", update=update.get("update_id"))
            return None
        if isinstance(event, IgnoredEvent):
            self._ignored.log_once(event)
            return None
        return event

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return codec.render(message)

    def render_file(self, file: SentFile) -> str:
        return codec.render_file(file)

    def with_repeat_notice(self, chunk: str) -> str:
        return codec.with_repeat_notice(chunk)

    def without_formatting(self, chunk: str) -> str:
        return codec.without_formatting(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        target = codec.build_target(route)
        if (document := codec.build_document(chunk)) is not None:
            caption, files = document
            sent = await self._api.call_api("sendDocument", target | caption, files=files)
        else:
            sent = await self._api.call_api("sendMessage", target | codec.build_parameters(chunk))
        return str(sent["message_id"])

    async def send_file(self, route: Route, chunk: str, content: bytes, *, key: str) -> str:
        caption, files = codec.build_upload(chunk, content)
        sent = await self._api.call_api(
            "sendDocument",
            codec.build_target(route) | caption | {"disable_content_type_detection": True},
            files=files,
            read=UPLOAD_TIMEOUT,
        )
        return str(sent["message_id"])

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        parameters = codec.build_parameters(chunk)
        parameters.pop("reply_parameters", None)
        target = {"chat_id": int(route.chat), "message_id": int(message)}
        try:
            await self._api.call_api("editMessageText", target | parameters)
        except NotDelivered as error:
            if "message is not modified" not in str(error).lower():
                raise

    async def show_typing(self, route: Route) -> None:
        await self._api.call_api("sendChatAction", codec.build_target(route) | {"action": "typing"})

    async def answer_button(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        query = pressed.event.removeprefix("press:")
        told = {"callback_query_id": query, "text": text[:200]}
        with suppress(NotDelivered):  # too old: the buttons are removed anyway
            await self._api.call_api("answerCallbackQuery", told)
        if closed:
            target = {"chat_id": pressed.route.chat, "message_id": pressed.message}
            shown = codec.build_outcome(became) if became else {}
            try:
                await self._api.call_api("editMessageReplyMarkup", target | shown)
            except NotDelivered as error:
                if "message is not modified" not in str(error).lower():
                    raise

    async def fetch_file(self, file: IncomingFile, *, most: int) -> bytes:
        found = await self._api.call_api("getFile", {"file_id": file.id})
        if found.get("file_size", 0) > most:
            raise NotDelivered(f"the file has {found['file_size']:,} bytes")
        return await self._api.download_file(found["file_path"], most=most)
