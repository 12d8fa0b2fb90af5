"""The Slack channel: envelopes are acknowledged only once their events are stored."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import structlog

from clew.config.secret import Secret
from clew.core.channel_events import DM, IgnoredEvent, MessageReceived
from clew.engine.log_throttle import LogThrottle
from clew.errors import ChannelError, NotDelivered, SettingsError
from clew.gateway.channel import Channel, ChannelCapabilities, ChannelConfig
from clew.gateway.channels.slack import codec
from clew.gateway.channels.slack.messages import MAX_LENGTH, replace_buttons
from clew.gateway.channels.slack.socket_mode import SocketModeConnection
from clew.gateway.channels.slack.transport import SlackApi
from clew.gateway.http import PlatformHttp
from clew.gateway.ignored_events import IgnoredEventLog
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from clew.core.channel_events import ButtonPressed, ChannelEvent, IncomingFile, OutboundMessage
    from clew.core.route import Route
    from clew.core.sent_files import SentFile

log = structlog.get_logger(__name__)

BASE_URL = "https://slack.com/api/"
#: Seconds between two keepalive batches.
KEEPALIVE_INTERVAL = 30.0
#: The event type in the metadata of our messages.
METADATA_EVENT = "clew_delivery"
#: Pages of history that are searched for a message, and their size.
_MAX_PAGES, _PAGE_SIZE = 5, 200
#: Maximum messages with pressed buttons, kept until they are answered.
_MAX_PRESSED = 200
#: Maximum cached names, and seconds for a look-up.
_MAX_NAMES, _LOOKUP_TIMEOUT = 1000, 3.0
#: Seconds after which a user group or the start of a thread is looked up again.
_LOOKUP_INTERVAL = 3600.0
#: The channel's own settings keys.
OPTIONS = frozenset({"app_token", "command"})

Json = dict[str, Any]

CAPABILITIES = ChannelCapabilities(
    max_length=MAX_LENGTH,
    unit="characters",
    markup="rich text",
    edits=True,
    threads=True,
    buttons=True,
    documents=True,
    max_file_bytes=1_000_000_000,
    files=True,
    ordered_ids=True,
    read_back=True,
    # Slack's own advice: one message per second in each channel.
    chat_pause={"dm": 1.0, "group": 1.0},
)


def open_channel(config: ChannelConfig) -> Channel:
    """
    Create the channel; the entry point names this function.

    :raises SettingsError: if a token is missing or of the wrong type
    """
    table = f"channels.{config.name}"
    if unknown := sorted(config.options.keys() - OPTIONS):
        raise SettingsError(
            f"{table} has no setting {unknown[0]}; its own are {', '.join(sorted(OPTIONS))}"
        )
    token = "" if config.token is None else config.token.reveal()
    if not token.startswith("xoxb-"):
        raise SettingsError(
            f"{table}.token is not the token of a Slack bot, which begins with xoxb-: the app's "
            "page shows it under OAuth & Permissions"
        )
    app_token = config.options.get("app_token")
    revealed = app_token.reveal() if isinstance(app_token, Secret) else str(app_token or "")
    parts = revealed.split("-")
    if parts[0] != "xapp" or len(parts) < 4:
        raise SettingsError(
            f"{table}.app_token is not the token of a Slack app, which looks like xapp-1-A0…-…: "
            "create one on the app's page under Basic Information, with the scope "
            "connections:write"
        )
    return SlackChannel(config, token=token, app_token=revealed, app=parts[2])


class SlackChannel(Channel):
    """The channel of one app in one workspace."""

    platform = codec.PLATFORM

    def __init__(self, config: ChannelConfig, *, token: str, app_token: str, app: str) -> None:
        # Envelopes go to any holder of the app's token, whatever the workspace.
        self.account = app
        self.capabilities = CAPABILITIES
        self._config, self._token, self._app_token = config, token, app_token
        command = str(config.options.get("command") or "/clew")
        self._identity = codec.SlackIdentity(user="", label=config.label, command=command)
        self._pressed_messages: OrderedDict[str, Json] = OrderedDict()
        self._names: OrderedDict[str, str] = OrderedDict()
        self._ignored, self._lookup_throttle = (
            IgnoredEventLog(config.name),
            LogThrottle(interval=_LOOKUP_INTERVAL),
        )

    async def __aenter__(self) -> Self:
        self._http = PlatformHttp("Slack")
        base_url = self._config.base_url or BASE_URL
        self._api = SlackApi(
            self._http, token=self._token, app_token=self._app_token, base_url=base_url
        )
        try:
            me = await self._api.call_api("auth.test", {})
        except BaseException:
            # A failed __aenter__ is not followed by __aexit__: close the connections here.
            await self._http.aclose()
            raise
        self._identity = codec.SlackIdentity(
            user=me["user_id"],
            bot=me.get("bot_id"),
            label=self._config.label,
            command=self._identity.command,
        )
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        while True:
            async with SocketModeConnection(await self._api.get_socket_url()) as socket:
                while not socket.is_ending:
                    envelopes = await socket.read_envelopes(seconds=KEEPALIVE_INTERVAL)
                    yield await self._parse_envelopes(envelopes)
                    # The next batch was requested: these are stored.
                    await socket.acknowledge(envelopes)

    async def _parse_envelopes(self, envelopes: Sequence[Json]) -> Sequence[ChannelEvent]:
        events: list[ChannelEvent] = []
        for envelope in envelopes:
            await self._look_up_groups(codec.find_mentioned_groups(envelope))
            if (event := self._parse_envelope(envelope)) is not None:
                events.append(await self._add_parent(envelope, await self._add_sender_name(event)))
        return events

    async def _look_up_groups(self, groups: frozenset[str]) -> None:
        """Look up whether the app is in the mentioned user groups, once an hour."""
        for group in sorted(groups):
            if not self._lookup_throttle.is_due(("group", group)):
                continue
            asked = {"usergroup": group}
            found = await self._look_up_optional("usergroups.users.list", asked) or {}
            inside = self._identity.user in (found.get("users") or ())
            left = self._identity.groups - {group}
            self._identity = replace(self._identity, groups=left | {group} if inside else left)

    async def _add_parent(self, envelope: Json, event: ChannelEvent) -> ChannelEvent:
        """Quote the first message when the agent is first addressed in others' thread."""
        if not isinstance(event, MessageReceived) or not event.addressed:
            return event
        place = codec.find_foreign_thread(envelope, self._identity)
        if place is None or not self._lookup_throttle.is_due(("thread", *place)):
            return event
        channel, thread = place
        asked = {"channel": channel, "ts": thread, "limit": "1"}
        found = await self._look_up_optional("conversations.replies", asked) or {}
        messages: list[Json] = found.get("messages") or []
        first = next((one for one in messages if one.get("ts") == thread), None)
        if first is None or codec.was_received(first, self._identity):
            return event
        return replace(event, quoted=(codec.read_parent(first, self._identity), *event.quoted))

    async def _look_up_optional(self, method: str, asked: dict[str, str]) -> Json | None:
        """Return optional information, or ``None`` if it is not available soon."""
        try:
            async with asyncio.timeout(_LOOKUP_TIMEOUT):
                return await self.rate_limited(lambda: self._api.look_up(method, asked))
        except (TimeoutError, ChannelError) as error:
            log.info("not_looked_up", method=method, error=str(error))
            return None

    def _parse_envelope(self, envelope: Json) -> ChannelEvent | None:
        try:
            event = self._parse_or_ignore(envelope)
        except (KeyError, TypeError, ValueError, AttributeError):
            # Skipped: redelivered for ever, it would block all later ones.
            log.exception("envelope_not_understood", envelope=envelope.get("envelope_id"))
            return None
        payload: Json = envelope.get("payload") or {}
        message = payload.get("message")
        if event is not None and envelope.get("type") == "interactive" and message:
            self._pressed_messages[event.event] = message
            while len(self._pressed_messages) > _MAX_PRESSED:
                self._pressed_messages.popitem(last=False)
        return event

    def _parse_or_ignore(self, envelope: Json) -> ChannelEvent | None:
        found = codec.parse_envelope(envelope, self._identity)
        if isinstance(found, IgnoredEvent):
            self._ignored.log_once(found)
            return None
        return found

    async def _add_sender_name(self, event: ChannelEvent) -> ChannelEvent:
        """Add the sender's name in chats with several people: Slack sends only ids."""
        if not isinstance(event, MessageReceived) or event.route.kind == DM or event.sender.name:
            return event
        user = event.sender.id
        if user not in self._names:
            self._names[user] = await self._look_up_name(user)
            while len(self._names) > _MAX_NAMES:
                self._names.popitem(last=False)
        return replace(event, sender=replace(event.sender, name=self._names[user]))

    async def _look_up_name(self, user: str) -> str:
        # Better without a name than late.
        looked = await self._look_up_optional("users.info", {"user": user}) or {}
        person: Json = looked.get("user") or {}
        profile: Json = person.get("profile") or {}
        return str(profile.get("display_name") or person.get("real_name") or "")

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return codec.render(message)

    def render_file(self, file: SentFile) -> str:
        return codec.render_file(file)

    def with_repeat_notice(self, chunk: str) -> str:
        return codec.with_repeat_notice(chunk)

    def without_formatting(self, chunk: str) -> str:
        return codec.without_formatting(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        if (document := codec.build_document(chunk, key=key)) is not None:
            return await self._api.upload_document(codec.build_target(route), document)
        sent = await self._api.call_api(
            "chat.postMessage",
            {
                **codec.build_target(route),
                **codec.build_parameters(chunk),
                "unfurl_links": False,
                "unfurl_media": False,
                "metadata": {"event_type": METADATA_EVENT, "event_payload": {"key": key}},
            },
        )
        return str(sent["ts"])

    async def send_file(self, route: Route, chunk: str, content: bytes, *, key: str) -> str:
        file = codec.build_document(chunk, key=key, content=content)
        assert file is not None
        return await self._api.upload_document(codec.build_target(route), file)

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        target = {"channel": route.chat, "ts": message}
        await self._api.call_api("chat.update", {**target, **codec.build_parameters(chunk)})

    async def find_message(self, route: Route, chunk: str, *, key: str) -> str | None:
        asked = {"channel": route.chat, "limit": str(_PAGE_SIZE), "include_all_metadata": "true"}
        method = "conversations.history"
        if route.thread is not None:
            method, asked["ts"] = "conversations.replies", route.thread
        document = codec.build_document(chunk, key=key)
        for _ in range(_MAX_PAGES):
            page = await self._api.look_up(method, asked)
            for message in page.get("messages", ()):
                if document is not None and (file := _find_file(message, document.name)):
                    return file
                if _delivery_key(message) == key:
                    return str(message["ts"])
            more: Json = page.get("response_metadata") or {}
            if not more.get("next_cursor"):
                return None
            asked["cursor"] = more["next_cursor"]
        return None

    async def answer_button(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        where = codec.build_target(pressed.route)
        told = {
            **where,
            "user": pressed.sender.id,
            "text": codec.escape_mrkdwn(text),
            "mrkdwn": False,
        }
        message = self._pressed_messages.pop(pressed.event, None)
        with suppress(NotDelivered):  # the user has left: the buttons are removed anyway
            await self._api.call_api("chat.postEphemeral", told)
        if closed and message is not None:
            target = {"channel": pressed.route.chat, "ts": pressed.message}
            await self._api.call_api("chat.update", {**target, **replace_buttons(message, became)})

    async def fetch_file(self, file: IncomingFile, *, most: int) -> bytes:
        looked = await self._api.look_up("files.info", {"file": file.id})
        found: Json = looked.get("file") or {}
        if found.get("size", 0) > most:
            raise NotDelivered(f"the file has {found['size']:,} bytes")
        url = found.get("url_private_download") or found.get("url_private")
        if not url:
            raise NotDelivered("Slack does not say where the file is")
        return await self._api.download_file(url, most=most)


def _find_file(message: Json, name: str) -> str | None:
    """Return the id of a message's file with this name."""
    files: list[Json] = message.get("files") or []
    return next((str(file["id"]) for file in files if file.get("name") == name), None)


def _delivery_key(message: Json) -> str | None:
    metadata: Json = message.get("metadata") or {}
    payload: Json = metadata.get("event_payload") or {}
    return payload.get("key") if metadata.get("event_type") == METADATA_EVENT else None
