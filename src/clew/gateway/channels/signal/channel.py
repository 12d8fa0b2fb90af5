"""The Signal channel: events of the daemon's stream are confirmed by their number."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

import structlog

from clew.core.channel_events import DM, IgnoredEvent, MessageReceived
from clew.core.payload import as_object, as_text
from clew.core.route import Route
from clew.errors import NotDelivered, SettingsError
from clew.gateway.channel import Channel, ChannelCapabilities, ChannelConfig
from clew.gateway.channels.signal import codec, messages
from clew.gateway.channels.signal.transport import EventStream, SignalDaemon
from clew.gateway.http import PlatformHttp
from clew.gateway.ignored_events import IgnoredEventLog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from clew.core.channel_events import ChannelEvent, IncomingFile, OutboundMessage
    from clew.core.sent_files import SentFile
    from clew.gateway.channels.signal.transport import StreamedEvent

log = structlog.get_logger(__name__)

#: Seconds between two keepalive batches.
KEEPALIVE_INTERVAL: Final = 30.0
#: Key in the channel storage: the number of the last stored event.
_POSITION: Final = "place"
#: Chats whose last message is remembered, for the read receipt.
_MAX_CHATS: Final = 10_000
_BASE_URL: Final = "http://127.0.0.1:8080"
#: The channel's own settings keys.
OPTIONS: Final = frozenset({"account", "read_receipts"})

CAPABILITIES = ChannelCapabilities(
    max_length=messages.MAX_LENGTH,
    unit="UTF-16 code units",
    markup="styles",
    documents=True,
    max_file_bytes=100_000_000,
    typing=True,
    files=True,
)


def open_channel(config: ChannelConfig) -> Channel:
    """
    Create the channel; the entry point names this function.

    :raises SettingsError: if the account or the daemon's address is missing
    """
    table = f"channels.{config.name}"
    if unknown := sorted(config.options.keys() - OPTIONS):
        raise SettingsError(
            f"{table} has no setting {unknown[0]}; its own are {', '.join(sorted(OPTIONS))}"
        )
    # Without quotation marks it is read as a number.
    digits = str(config.options.get("account") or "").replace(" ", "").removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        raise SettingsError(f"{table}.account must be the agent's number, such as +4915112345678")
    receipts = str(config.options.get("read_receipts", True)).lower()
    if receipts not in ("true", "false"):
        raise SettingsError(f"{table}.read_receipts must be true or false, not {receipts!r}")
    address = urlsplit(config.base_url or _BASE_URL)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise SettingsError(f"{table}.base_url is not the address of the daemon of signal-cli")
    return SignalChannel(config, account=f"+{digits}", read_receipts=receipts == "true")


class SignalChannel(Channel):
    """The channel of one account of a daemon."""

    platform = codec.PLATFORM

    def __init__(self, config: ChannelConfig, *, account: str, read_receipts: bool) -> None:
        self._config, self.account, self._read_receipts = config, account, read_receipts
        self.capabilities = CAPABILITIES
        self._identity = codec.SignalIdentity(number=account, label=config.label)
        self._ignored = IgnoredEventLog(config.name)
        self._position = ""
        #: The last message of each direct chat that is not marked as read.
        self._unread: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        self._http = PlatformHttp("signal-cli")
        base_url = self._config.base_url or _BASE_URL
        self._daemon = SignalDaemon(self._http, base_url=base_url, account=self.account)
        try:
            await self._daemon.identify()
            self._position = await self._config.storage.get(_POSITION) or ""
        except BaseException:
            # A failed __aenter__ is not followed by __aexit__: close the connections here.
            await self._http.aclose()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    # Incoming

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        while True:
            async with EventStream(self._daemon.events_url, after=self._position) as stream:
                while True:
                    told = await stream.read(seconds=KEEPALIVE_INTERVAL)
                    found = [self._parse(one) for one in told]
                    yield [event for event in found if event is not None]
                    # The next batch was requested: these are stored.
                    await self._store_position(told)

    def _parse(self, told: StreamedEvent) -> ChannelEvent | None:
        try:
            found = codec.parse_envelope(told.told, self._identity)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            # Skipped: received again for ever, it would block all later ones.
            log.exception("envelope_not_understood")
            return None
        if isinstance(found, IgnoredEvent):
            self._ignored.log_once(found)
            return None
        if isinstance(found, MessageReceived) and found.route.kind == DM:
            self._unread[found.route.chat] = found.message
            if len(self._unread) > _MAX_CHATS:
                del self._unread[next(iter(self._unread))]
        return found

    async def _store_position(self, told: Sequence[StreamedEvent]) -> None:
        if told and told[-1].id and told[-1].id != self._position:
            self._position = told[-1].id
            await self._config.storage.put(_POSITION, self._position)

    # Outgoing

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return messages.render(message)

    def render_file(self, file: SentFile) -> str:
        return messages.render_file(file)

    def with_repeat_notice(self, chunk: str) -> str:
        return messages.with_repeat_notice(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        document = messages.read_document(chunk)
        return await self._daemon.send(messages.build_send(route, chunk, document))

    async def send_file(self, route: Route, chunk: str, content: bytes, *, key: str) -> str:
        return await self._daemon.send(messages.build_send(route, chunk, content))

    async def show_typing(self, route: Route) -> None:
        read = self._unread.pop(route.chat, None)
        if read is not None and self._read_receipts:
            told = {"recipient": route.chat, "targetTimestamp": [int(read)], "type": "read"}
            await self._daemon.call("sendReceipt", told)
        await self._daemon.call("sendTyping", messages.build_recipient(route))

    async def fetch_file(self, file: IncomingFile, *, most: int) -> bytes:
        kind, chat, attachment = file.id.split(":", 2)
        place = messages.build_recipient(Route(platform=codec.PLATFORM, kind=kind, chat=chat))
        if file.size is not None and file.size > most:
            raise NotDelivered(f"the file has more than {most:,} bytes")
        told = await self._daemon.call("getAttachment", {"id": attachment, **place})
        data = told if isinstance(told, str) else as_text(as_object(told).get("data"))
        content = base64.b64decode(data)
        if not content or len(content) > most:
            raise NotDelivered(f"the file is gone, or has more than {most:,} bytes")
        return content
