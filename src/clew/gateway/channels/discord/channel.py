"""The Discord channel: resumes its session after the last stored event, also after a restart."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
from collections import OrderedDict
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import structlog

from clew.core.channel_events import IgnoredEvent
from clew.errors import ChannelError, NotDelivered, SettingsError
from clew.gateway.channel import Channel, ChannelCapabilities, ChannelConfig
from clew.gateway.channels.discord import codec
from clew.gateway.channels.discord.gateway_connection import DiscordSession, GatewayConnection
from clew.gateway.channels.discord.messages import MAX_LENGTH
from clew.gateway.channels.discord.transport import DiscordApi
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

BASE_URL = "https://discord.com/api/v10"
#: Seconds between two keepalive batches.
KEEPALIVE_INTERVAL = 30.0
#: Keys in the channel storage: read position, known chats, registered commands.
_POSITION, _CHATS, _COMMANDS = "place", "chats", "commands"
#: Chats that are checked for missed messages, and messages per chat.
_MAX_CHATS, _PAGE_SIZE = 200, 100
#: Events of two chats may arrive out of order within this time.
_OVERLAP = timedelta(minutes=1)
#: Maximum interactions kept until they are answered.
_MAX_TOKENS = 500
_EPHEMERAL = 1 << 6
_MESSAGE_RESPONSE = 4

#: The channel's own settings keys.
OPTIONS: frozenset[str] = frozenset()

CAPABILITIES = ChannelCapabilities(
    max_length=MAX_LENGTH,
    unit="UTF-16 code units",
    markup="Markdown",
    edits=True,
    threads=True,
    buttons=True,
    documents=True,
    # That of servers without boosts, and of direct chats.
    max_file_bytes=10 * 1024 * 1024,
    typing=True,
    files=True,
    ordered_ids=True,
    idempotent=True,
    # "A few minutes", according to Discord.
    key_lifetime=120.0,
    # Discord allows five messages per five seconds and channel, and fifty calls per second and bot.
    chat_pause={"dm": 1.0, "group": 1.0},
    account_pause=1 / 45,
)

Json = dict[str, Any]


def open_channel(config: ChannelConfig) -> Channel:
    """
    Create the channel; the entry point names this function.

    :raises SettingsError: if there is no usable token
    """
    token = "" if config.token is None else config.token.reveal().strip()
    bot = _parse_bot_id(token.removeprefix("Bot "))
    if bot is None:
        raise SettingsError(
            f"channels.{config.name}.token is not the token of a Discord bot, which has three "
            "parts separated by dots: create one on the bot's page in the developer portal"
        )
    if config.options:
        unknown = min(config.options)
        raise SettingsError(f"channels.{config.name} has no setting {unknown}")
    return DiscordChannel(config, token.removeprefix("Bot "), bot)


def _parse_bot_id(token: str) -> str | None:
    """Return the bot's id, with which a token begins."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        found = base64.urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    return found if found.isascii() and found.isdigit() else None


class DiscordChannel(Channel):
    """The channel of one bot."""

    platform = codec.PLATFORM

    def __init__(self, config: ChannelConfig, token: str, bot: str) -> None:
        self.account = bot
        self.capabilities = CAPABILITIES
        self._config, self._token = config, token
        self._identity = codec.DiscordIdentity(id=bot, label=config.label)
        self._ignored = IgnoredEventLog(config.name)
        #: Servers whose roles are known.
        self._guilds: set[str] = set()
        self._connection: GatewayConnection | None = None
        #: The session to resume, and the newest stored message.
        self._session: DiscordSession | None = None
        self._newest: str | None = None
        #: A session ended whose remaining events cannot be replayed.
        self._has_gap = False
        #: The parent of each known channel that is a thread.
        self._parents: dict[str, str | None] = {}
        self._chats: dict[str, None] = {}
        #: Tokens to answer interactions with.
        self._tokens: OrderedDict[str, str] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._http = PlatformHttp("Discord")
        self._api = DiscordApi(
            self._http, token=self._token, base_url=self._config.base_url or BASE_URL
        )
        try:
            await self._api.call_api("GET", "/users/@me")
            self._url: str = (await self._api.call_api("GET", "/gateway/bot"))["url"]
            await self._register_commands()
            await self._restore_position()
            await self._connect()
        except BaseException:
            # A failed __aenter__ is not followed by __aexit__: close the connections here.
            await self._close_all()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close_all()

    async def _close_all(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await self._disconnect()
        await self._http.aclose()

    async def _restore_position(self) -> None:
        marks = self._config.storage
        self._chats = dict.fromkeys(json.loads(await marks.get(_CHATS) or "[]"))
        place: Json = json.loads(await marks.get(_POSITION) or "{}")
        self._newest = place.get("newest")
        if session := place.get("session"):
            self._session = DiscordSession(**session)

    async def _store_position(self) -> None:
        session = None if self._session is None else asdict(self._session)
        place = {"session": session, "newest": self._newest}
        await self._config.storage.put(_POSITION, json.dumps(place))

    async def _connect(self) -> GatewayConnection:
        link = GatewayConnection(url=self._url, token=self._token, session=self._session)
        await link.__aenter__()
        self._connection = link
        self._has_gap |= link.session_lost
        if link.session != self._session:
            self._session = link.session
            await self._store_position()
        return link

    async def _disconnect(self) -> None:
        link, self._connection = self._connection, None
        if link is not None:
            self._session = link.session
            self._has_gap |= link.session is None
            await link.__aexit__(None, None, None)

    async def _register_commands(self) -> None:
        listed = codec.build_commands(self._config.commands)
        digest = hashlib.sha256(json.dumps(listed).encode()).hexdigest()
        if not listed or await self._config.storage.get(_COMMANDS) == digest:
            return
        # The application id of old bots differs from the bot's.
        app = (await self._api.call_api("GET", "/applications/@me"))["id"]
        await self._api.call_api("PUT", f"/applications/{app}/commands", listed)
        await self._config.storage.put(_COMMANDS, digest)

    # Incoming

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        while True:
            link = self._connection or await self._connect()
            try:
                if self._has_gap:
                    yield await self._fetch_missed()
                    self._has_gap = False
                while not link.is_ending:
                    dispatches = await link.read_dispatches(seconds=KEEPALIVE_INTERVAL)
                    events = await self._parse_dispatches(dispatches)
                    yield events
                    # The next batch was requested: these are stored.
                    await self._confirm_stored(link, dispatches, events)
            finally:
                await self._disconnect()

    async def _parse_dispatches(self, dispatches: Sequence[Json]) -> Sequence[ChannelEvent]:
        events: list[ChannelEvent] = []
        for dispatch in dispatches:
            self._parents.update(codec.read_parents(dispatch))
            await self._ensure_parents(codec.find_required_channels(dispatch))
            await self._ensure_roles(dispatch)
            if (event := self._parse_dispatch(dispatch)) is not None:
                events.append(event)
        return events

    def _parse_dispatch(self, dispatch: Json) -> ChannelEvent | None:
        try:
            event = self._parse_or_ignore(dispatch)
        except (KeyError, TypeError, ValueError, AttributeError):
            # Skipped: redelivered for ever, it would block all later ones.
            log.exception("dispatch_not_understood", kind=dispatch.get("t"), seq=dispatch.get("s"))
            return None
        if event is not None and dispatch["t"] == "INTERACTION_CREATE":
            self._tokens[event.event] = dispatch["d"]["token"]
            while len(self._tokens) > _MAX_TOKENS:
                self._tokens.popitem(last=False)
        return event

    def _parse_or_ignore(self, dispatch: Json) -> ChannelEvent | None:
        found = codec.parse_dispatch(dispatch, self._identity, self._parents)
        if isinstance(found, IgnoredEvent):
            self._ignored.log_once(found)
            return None
        return found

    def _learn_roles(self, guild: str, roles: Sequence[Json]) -> None:
        self._guilds.add(guild)
        self._identity = replace(
            self._identity, roles=self._identity.roles | codec.find_own_roles(roles, self._identity)
        )

    async def _ensure_roles(self, dispatch: Json) -> None:
        """Look up the roles of a mentioned server: a resumed session does not repeat them."""
        if dispatch.get("t") == "GUILD_CREATE":
            self._learn_roles(str(dispatch["d"]["id"]), dispatch["d"].get("roles") or [])
        guild, named = codec.find_mentioned_roles(dispatch)
        if guild is None or guild in self._guilds or not named - self._identity.roles:
            return
        try:
            found: list[Json] = await self._get_limited(f"/guilds/{guild}/roles")
        except NotDelivered as error:
            log.info("roles_not_found", guild=guild, error=str(error))
            found = []
        self._learn_roles(guild, found)

    async def _ensure_parents(self, channels: Sequence[str]) -> None:
        """Look up the parents of channels: a resumed session does not repeat them."""
        for channel in channels:
            if channel in self._parents:
                continue
            try:
                found = await self._get_limited(f"/channels/{channel}")
                self._parents[channel] = codec.get_parent(found)
            except NotDelivered:
                self._parents[channel] = None

    async def _get_limited(self, path: str) -> Any:
        return await self.rate_limited(lambda: self._api.call_api("GET", path))

    async def _confirm_stored(
        self, link: GatewayConnection, dispatches: Sequence[Json], events: Sequence[ChannelEvent]
    ) -> None:
        self._session = link.confirm_stored(dispatches) or self._session
        if not events:
            # Replaying these after a restart changes nothing.
            return
        messages = [one["d"] for one in dispatches if one.get("t") == "MESSAGE_CREATE"]
        chats = {str(message["channel_id"]) for message in messages} - self._chats.keys()
        if chats:
            self._chats |= dict.fromkeys(chats)
            await self._config.storage.put(_CHATS, json.dumps(list(self._chats)[-_MAX_CHATS:]))
        self._newest = str(messages[-1]["id"]) if messages else self._newest
        await self._store_position()
        for dispatch in dispatches:
            if dispatch.get("t") == "INTERACTION_CREATE" and dispatch["d"].get("type") == 2:
                self._spawn_confirmation(dispatch["d"])

    def _spawn_confirmation(self, interaction: Json) -> None:
        task = asyncio.create_task(self._confirm_command(interaction), name="discord:command")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _confirm_command(self, interaction: Json) -> None:
        """Confirm to the sender that a command is stored; its result is a separate message."""
        name, id_ = interaction["data"]["name"], interaction["id"]
        self._tokens.pop(f"command:{id_}", None)
        try:
            await self._respond_to(id_, interaction["token"], f"/{name}")
        except ChannelError as error:
            log.info("command_not_confirmed", error=str(error))

    async def _respond_to(self, interaction: str, token: str, text: str) -> None:
        nobody: Json = {"parse": []}
        told = {"content": text[:MAX_LENGTH], "flags": _EPHEMERAL, "allowed_mentions": nobody}
        path = f"/interactions/{interaction}/{token}/callback"
        await self._api.call_api("POST", path, {"type": _MESSAGE_RESPONSE, "data": told})

    async def _fetch_missed(self) -> Sequence[ChannelEvent]:
        """Return messages of known chats that were written while there was no session."""
        if self._newest is None:
            return []
        after = codec.time_to_snowflake(codec.snowflake_to_time(self._newest) - _OVERLAP)
        events: list[ChannelEvent] = []
        for chat in list(self._chats)[-_MAX_CHATS:]:
            await self._ensure_parents([chat])
            try:
                path = f"/channels/{chat}/messages?after={after}&limit={_PAGE_SIZE}"
                found: list[Json] = await self._get_limited(path)
                place: Json = await self._get_limited(f"/channels/{chat}")
            except NotDelivered as error:
                log.info("chat_not_read", chat=chat, error=str(error))
                continue
            guild = {"guild_id": place["guild_id"]} if place.get("guild_id") else {}
            for message in sorted(found, key=lambda one: int(one["id"])):
                told = self._parse_dispatch({"t": "MESSAGE_CREATE", "d": {**message, **guild}})
                events += [] if told is None else [told]
        log.info("missed_messages", found=len(events))
        return events

    # Outgoing

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return codec.render(message)

    def render_file(self, file: SentFile) -> str:
        return codec.render_file(file)

    def with_repeat_notice(self, chunk: str) -> str:
        return codec.with_repeat_notice(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        path = f"/channels/{codec.get_target_channel(route)}/messages"
        body, file = codec.build_message(chunk, key=key), codec.build_file(chunk)
        if file is None:
            sent = await self._api.call_api("POST", path, body)
        else:
            sent = await self._api.upload_file(path, body, *file)
        return str(sent["id"])

    async def send_file(self, route: Route, chunk: str, content: bytes, *, key: str) -> str:
        path = f"/channels/{codec.get_target_channel(route)}/messages"
        name, media_type = codec.build_upload(chunk)
        message = codec.build_message(chunk, key=key)
        sent = await self._api.upload_file(path, message, name, content, media_type)
        return str(sent["id"])

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        path = f"/channels/{codec.get_target_channel(route)}/messages/{message}"
        await self._api.call_api("PATCH", path, codec.build_edit(chunk))

    async def show_typing(self, route: Route) -> None:
        await self._api.call_api("POST", f"/channels/{codec.get_target_channel(route)}/typing")

    async def answer_button(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        token = self._tokens.pop(pressed.event, None)
        if token is not None:
            with suppress(NotDelivered):  # too old: the buttons are removed anyway
                await self._respond_to(pressed.event.removeprefix("press:"), token, text)
        if closed:
            path = f"/channels/{codec.get_target_channel(pressed.route)}/messages/{pressed.message}"
            await self._api.call_api("PATCH", path, {"components": codec.build_outcome(became)})

    async def fetch_file(self, file: IncomingFile, *, most: int) -> bytes:
        channel, message, attachment = file.id.split("/")
        found: Json = await self._api.call_api("GET", f"/channels/{channel}/messages/{message}")
        passed_on: list[Json] = found.get("message_snapshots") or []
        messages: list[Json] = [found, *(one.get("message") or {} for one in passed_on)]
        for each in (one for told in messages for one in told.get("attachments", ())):
            if str(each["id"]) == attachment:
                if each.get("size", 0) > most:
                    raise NotDelivered(f"the file has {each['size']:,} bytes")
                return await self._api.download_file(each["url"], most=most)
        raise NotDelivered("the file does not exist any more")
