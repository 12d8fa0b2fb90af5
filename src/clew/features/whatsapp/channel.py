"""The WhatsApp channel: webhooks are answered once stored; receipts settle what is unknown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Self

import structlog

from clew.core.channel_events import MessageReceived
from clew.core.payload import as_object
from clew.errors import NotDelivered, NotSent, OutcomeUnknown, SettingsError
from clew.features.whatsapp import codec, messages
from clew.features.whatsapp.failures import WindowClosed, explain_error
from clew.features.whatsapp.receipts import ReceiptBook
from clew.features.whatsapp.settings import read_whatsapp_settings
from clew.features.whatsapp.signing import is_signed, read_challenge
from clew.features.whatsapp.transport import WhatsAppApi
from clew.features.whatsapp.window import ConversationWindows, WaitsForPerson
from clew.gateway.channel import Channel, ChannelCapabilities
from clew.gateway.http import PlatformHttp
from clew.gateway.ignored_events import IgnoredEventLog
from clew.gateway.pushed_events import PushedEvents
from clew.plugin.webhook_registry import WEBHOOK_NOT_READY, WebhookResponse
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from types import TracebackType

    from clew.core.channel_events import (
        ButtonPressed,
        ChannelEvent,
        IncomingFile,
        OutboundMessage,
    )
    from clew.core.route import Route
    from clew.core.sent_files import SentFile
    from clew.features.whatsapp.codec import Receipt
    from clew.features.whatsapp.settings import WhatsAppSettings
    from clew.gateway.channel import ChannelConfig
    from clew.plugin.webhook_registry import WebhookRegistry, WebhookRequest

log = structlog.get_logger(__name__)

#: Seconds for which a receipt is awaited: of a message that may have been refused, or lost.
RECEIPT_TIMEOUT: Final = 8.0
#: Chats whose last message is remembered, for the typing indicator.
_MAX_CHATS: Final = 10_000

CAPABILITIES = ChannelCapabilities(
    max_length=messages.MAX_LENGTH,
    unit="UTF-16 code units",
    markup="WhatsApp's formatting",
    buttons=True,
    documents=True,
    max_file_bytes=messages.MAX_FILE_BYTES,
    typing=True,
    files=True,
    receipts=True,
    # 80 messages a second for each number; a limit for each chat is told when it is met.
    account_pause=0.0125,
)

STORED_RESPONSE = WebhookResponse(status=200)
BAD_SIGNATURE = WebhookResponse(
    status=401,
    code="invalid_signature",
    message="the signature is not that of the app's secret",
)
BAD_VERIFY_TOKEN = WebhookResponse(
    status=403, code="invalid_verify_token", message="the verify token is not the configured one"
)
BAD_BODY = WebhookResponse(
    status=400, code="invalid_json", message="the body is not a webhook of WhatsApp"
)


def open_whatsapp_channel(config: ChannelConfig, webhooks: WebhookRegistry) -> Channel:
    """
    Create the channel, which receives the webhooks at the path of its name.

    :raises SettingsError: if a setting is missing or invalid
    """
    return WhatsAppChannel(config, read_whatsapp_settings(config), webhooks)


class WhatsAppChannel(Channel):
    """The channel of one phone number."""

    platform = codec.PLATFORM

    def __init__(
        self, config: ChannelConfig, settings: WhatsAppSettings, webhooks: WebhookRegistry
    ) -> None:
        self.account = settings.phone_number_id
        self.capabilities = CAPABILITIES
        self._config, self._settings, self._webhooks = config, settings, webhooks
        self._identity = codec.WhatsAppIdentity(
            phone_number_id=settings.phone_number_id, label=config.label
        )
        self._pushed = PushedEvents()
        self._receipts = ReceiptBook(config.storage)
        self._windows = ConversationWindows(config.storage)
        self._ignored = IgnoredEventLog(config.name)
        #: The last message of each chat, which the typing indicator marks as read.
        self._last: dict[str, str] = {}
        webhooks.declare_webhook(config.name)

    async def __aenter__(self) -> Self:
        self._http = PlatformHttp("WhatsApp")
        self._api = WhatsAppApi(self._http, self._settings)
        try:
            self._identity = replace(self._identity, number=await self._read_number())
            await self._receipts.load()
            await self._windows.load()
        except BaseException:
            # A failed __aenter__ is not followed by __aexit__: close the connections here.
            await self._http.aclose()
            raise
        self._webhooks.register_handler(self._config.name, self._receive_request)
        return self

    async def _read_number(self) -> str:
        try:
            return await self._api.read_number()
        except NotDelivered as error:
            raise SettingsError(
                f"channels.{self._config.name}.phone_number_id cannot be used: {error}"
            ) from None

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._webhooks.unregister_handler(self._config.name, self._receive_request)
        self._pushed.close()
        await self._http.aclose()

    # Incoming

    async def _receive_request(self, request: WebhookRequest) -> WebhookResponse:
        if request.query is not None:
            return self._answer_handshake(request.query)
        if not is_signed(self._settings.app_secret, request.headers, request.body):
            return BAD_SIGNATURE
        try:
            payload = as_object(json.loads(request.body))
        except (ValueError, RecursionError):
            return BAD_BODY
        told = codec.parse_webhook(payload, self._identity)
        for ignored in told.ignored:
            self._ignored.log_once(ignored)
        for receipt in told.receipts:
            self._log_failure(receipt)
        await self._receipts.record(told.receipts)
        await self._windows.note_events(told.events)
        for event in told.events:
            self._remember_last(event)
        stored = not told.events or await self._pushed.push(told.events)
        return STORED_RESPONSE if stored else WEBHOOK_NOT_READY

    def _answer_handshake(self, query: Mapping[str, str]) -> WebhookResponse:
        challenge = read_challenge(self._settings.verify_token, query)
        if challenge is None:
            return BAD_VERIFY_TOKEN
        return WebhookResponse(status=200, message=challenge)

    def _log_failure(self, receipt: Receipt) -> None:
        """Log that a message will not arrive, unless its delivery waits to be told."""
        if receipt.state == codec.FAILED and not self._receipts.is_awaited(receipt.key):
            error = str(explain_error(receipt.error, status=200))
            log.warning("message_failed_later", delivery=receipt.key, error=error)

    def _remember_last(self, event: ChannelEvent) -> None:
        if isinstance(event, MessageReceived):
            self._last.pop(event.route.chat, None)
            self._last[event.route.chat] = event.message
            if len(self._last) > _MAX_CHATS:
                del self._last[next(iter(self._last))]

    def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        return self._pushed.receive()

    # Outgoing

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return messages.render(message)

    def render_file(self, file: SentFile) -> str:
        return messages.render_file(file)

    def with_repeat_notice(self, chunk: str) -> str:
        return messages.with_repeat_notice(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        if (document := messages.read_document(chunk)) is not None:
            return await self.send_file(route, chunk, document[1], key=key)
        await self._windows.check_asked(route.chat)
        return await self._send_payload(route, messages.build_message(route, chunk, key=key), key)

    async def send_file(self, route: Route, chunk: str, content: bytes, *, key: str) -> str:
        await self._windows.check_asked(route.chat)
        name, _ = messages.read_file(chunk)
        upload = messages.choose_upload_type(chunk, len(content))
        media = await self._api.upload_file(name, content, upload.media_type)
        payload = messages.build_media(route, chunk, media, upload.kind, key=key)
        return await self._send_payload(route, payload, key)

    async def _send_payload(self, route: Route, payload: messages.Json, key: str) -> str:
        try:
            message = await self._api.send_message(payload)
            if not self._windows.is_open(route.chat):
                # WhatsApp takes a message that comes too late, and tells its failure afterwards.
                await self._check_receipt(key)
        except WindowClosed:
            await self._ask_to_write(route)
            raise WaitsForPerson from None
        return message

    async def _check_receipt(self, key: str) -> None:
        receipt = await self._receipts.wait_for(key, RECEIPT_TIMEOUT)
        if receipt is not None and receipt.state == codec.FAILED:
            error = explain_error(receipt.error, status=200)
            # Nothing of it is uncertain: it failed.
            raise NotSent(str(error)) if isinstance(error, OutcomeUnknown) else error

    async def _ask_to_write(self, route: Route) -> None:
        """
        Send the template that asks a person to write.

        :raises WindowClosed: if there is none
        """
        if not self._settings.template:
            raise WindowClosed
        asked = messages.build_template(
            route, self._settings.template, self._settings.template_language
        )
        await self._api.send_message(asked)
        await self._windows.note_asked(route.chat)

    async def find_message(self, route: Route, chunk: str, *, key: str) -> str | None:
        if (found := self._receipts.find_message(key)) is not None:
            return found
        await self._receipts.wait_for(key, RECEIPT_TIMEOUT)
        return self._receipts.find_message(key)

    async def show_typing(self, route: Route) -> None:
        if (message := self._last.get(route.chat)) is not None:
            await self._api.mark_read(messages.build_read_mark(message, typing=True))

    async def answer_button(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        # The buttons of a message stay: a reply to it tells what became of the question.
        told = {"type": "text", "text": {"body": became or text, "preview_url": False}}
        under = {"context": {"message_id": pressed.message}}
        await self._api.send_message(messages.address(pressed.route, {**told, **under}, key=""))

    async def fetch_file(self, file: IncomingFile, *, most: int) -> bytes:
        return await self._api.download_file(file.id, most=most)
