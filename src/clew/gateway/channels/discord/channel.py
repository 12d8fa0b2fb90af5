"""The channel: its session is taken up again at what was stored, also after a restart."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
from collections import OrderedDict
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import structlog

from clew.core.chat import IgnoredEvent
from clew.errors import ChannelError, NotDelivered, SettingsError
from clew.gateway.calls import client
from clew.gateway.channel import Capabilities, Channel, ChannelConfig
from clew.gateway.channels.discord import codec
from clew.gateway.channels.discord.link import Link, Session
from clew.gateway.channels.discord.messages import LONGEST
from clew.gateway.channels.discord.transport import Api
from clew.gateway.ignored_events import IgnoredEvents

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from clew.core.chat import ButtonPressed, ChannelEvent, IncomingFile, OutboundMessage
    from clew.core.route import Route

log = structlog.get_logger(__name__)

BASE_URL = "https://discord.com/api/v10"
#: Seconds between two signs of life.
BEAT = 30.0
#: What is kept over restarts: how far it has read, in which chats, and the commands it listed.
_PLACE, _CHATS, _COMMANDS = "place", "chats", "commands"
#: Chats that are asked for what was missed, and messages of each.
_MOST_CHATS, _PAGE = 200, 100
#: Two chats may tell of what happened in another order than it did.
_OVERLAP = timedelta(minutes=1)
#: Presses and commands, kept until they are answered.
_MOST_TOKENS = 500
_EPHEMERAL = 1 << 6
_SPOKEN = 4

#: The keys of its table that only this channel knows.
OPTIONS: frozenset[str] = frozenset()

CAPABILITIES = Capabilities(
    longest=LONGEST,
    unit="UTF-16 code units",
    markup="Markdown",
    edits=True,
    threads=True,
    buttons=True,
    typing=True,
    files=True,
    idempotent=True,
    # "A few minutes", Discord says.
    remembers=120.0,
    # Five messages in five seconds is what a channel takes; fifty calls a second a bot may make.
    chat_pause={"dm": 1.0, "group": 1.0},
    account_pause=1 / 45,
)

Json = dict[str, Any]


def open_channel(config: ChannelConfig) -> Channel:
    """
    What the entry point names.

    :raises SettingsError: if there is no usable token
    """
    token = "" if config.token is None else config.token.reveal().strip()
    bot = _bot_of(token.removeprefix("Bot "))
    if bot is None:
        raise SettingsError(
            f"channels.{config.name}.token is no token of a Discord bot, which has three parts "
            "between dots: the developer portal makes one on the bot's page"
        )
    if config.options:
        unknown = min(config.options)
        raise SettingsError(f"channels.{config.name} has no setting {unknown}")
    return DiscordChannel(config, token.removeprefix("Bot "), bot)


def _bot_of(token: str) -> str | None:
    """The bot's id, which a token begins with."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        found = base64.urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    return found if found.isascii() and found.isdigit() else None


class DiscordChannel(Channel):
    """One bot."""

    platform = codec.PLATFORM

    def __init__(self, config: ChannelConfig, token: str, bot: str) -> None:
        self.account = bot
        self.capabilities = CAPABILITIES
        self._config, self._token = config, token
        self._me = codec.Me(id=bot, label=config.label)
        self._ignored = IgnoredEvents(config.name)
        #: The servers whose roles are known.
        self._guilds: set[str] = set()
        self._link: Link | None = None
        #: What to take up after any break, and the newest message that is stored.
        self._session: Session | None = None
        self._newest: str | None = None
        #: A session ended whose rest cannot be told again.
        self._gap = False
        #: Which channels are threads, and of which channel.
        self._known: dict[str, str | None] = {}
        self._chats: dict[str, None] = {}
        #: What presses are answered with.
        self._tokens: OrderedDict[str, str] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._http = client()
        self._api = Api(self._http, token=self._token, base_url=self._config.base_url or BASE_URL)
        try:
            await self._api.call("GET", "/users/@me")
            self._url: str = (await self._api.call("GET", "/gateway/bot"))["url"]
            await self._list_commands()
            await self._remember()
            await self._connect()
        except BaseException:
            # Whoever could not enter does not leave: nobody else would close the connections.
            await self._leave()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await self._disconnect()
        await self._http.close()

    async def _remember(self) -> None:
        marks = self._config.marks
        self._chats = dict.fromkeys(json.loads(await marks.get(_CHATS) or "[]"))
        place: Json = json.loads(await marks.get(_PLACE) or "{}")
        self._newest = place.get("newest")
        if session := place.get("session"):
            self._session = Session(**session)

    async def _keep_place(self) -> None:
        session = None if self._session is None else asdict(self._session)
        place = {"session": session, "newest": self._newest}
        await self._config.marks.put(_PLACE, json.dumps(place))

    async def _connect(self) -> Link:
        link = Link(self._http, url=self._url, token=self._token, session=self._session)
        await link.__aenter__()
        self._link = link
        self._gap |= link.lost
        if link.session != self._session:
            self._session = link.session
            await self._keep_place()
        return link

    async def _disconnect(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            self._session = link.session
            self._gap |= link.session is None
            await link.__aexit__(None, None, None)

    async def _list_commands(self) -> None:
        listed = codec.commands(self._config.commands)
        digest = hashlib.sha256(json.dumps(listed).encode()).hexdigest()
        if not listed or await self._config.marks.get(_COMMANDS) == digest:
            return
        # Of old bots it is another id than the bot's.
        app = (await self._api.call("GET", "/applications/@me"))["id"]
        await self._api.call("PUT", f"/applications/{app}/commands", listed)
        await self._config.marks.put(_COMMANDS, digest)

    # In

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        while True:
            link = self._link or await self._connect()
            try:
                if self._gap:
                    yield await self._missed()
                    self._gap = False
                while not link.ends:
                    dispatches = await link.dispatches(seconds=BEAT)
                    events = await self._parsed(dispatches)
                    yield events
                    # Asked for more: these are stored.
                    await self._stored(link, dispatches, events)
            finally:
                await self._disconnect()

    async def _parsed(self, dispatches: Sequence[Json]) -> Sequence[ChannelEvent]:
        events: list[ChannelEvent] = []
        for dispatch in dispatches:
            self._known.update(codec.parents(dispatch))
            await self._look_up(codec.place_of(dispatch))
            await self._look_up_roles(dispatch)
            if (event := self._event(dispatch)) is not None:
                events.append(event)
        return events

    def _event(self, dispatch: Json) -> ChannelEvent | None:
        try:
            event = self._event_of(dispatch)
        except (KeyError, TypeError, ValueError, AttributeError):
            # Passed over: told again and again, it would keep all later ones away.
            log.exception("dispatch_not_understood", kind=dispatch.get("t"), seq=dispatch.get("s"))
            return None
        if event is not None and dispatch["t"] == "INTERACTION_CREATE":
            self._tokens[event.event] = dispatch["d"]["token"]
            while len(self._tokens) > _MOST_TOKENS:
                self._tokens.popitem(last=False)
        return event

    def _event_of(self, dispatch: Json) -> ChannelEvent | None:
        found = codec.parse(dispatch, self._me, self._known)
        if isinstance(found, IgnoredEvent):
            self._ignored.log(found)
            return None
        return found

    def _learn_roles(self, guild: str, roles: Sequence[Json]) -> None:
        self._guilds.add(guild)
        self._me = replace(self._me, roles=self._me.roles | codec.role_of(roles, self._me))

    async def _look_up_roles(self, dispatch: Json) -> None:
        """A session that is taken up does not say again which role is the bot's own."""
        if dispatch.get("t") == "GUILD_CREATE":
            self._learn_roles(str(dispatch["d"]["id"]), dispatch["d"].get("roles") or [])
        guild, named = codec.roles_named(dispatch)
        if guild is None or guild in self._guilds or not named - self._me.roles:
            return
        try:
            found: list[Json] = await self._look(f"/guilds/{guild}/roles")
        except NotDelivered as error:
            log.info("roles_not_found", guild=guild, error=str(error))
            found = []
        self._learn_roles(guild, found)

    async def _look_up(self, channels: Sequence[str]) -> None:
        """A session that is taken up does not say again which channels are threads."""
        for channel in channels:
            if channel in self._known:
                continue
            try:
                found = await self._look(f"/channels/{channel}")
                self._known[channel] = codec.parent_of(found)
            except NotDelivered:
                self._known[channel] = None

    async def _look(self, path: str) -> Any:
        return await self.passing(lambda: self._api.call("GET", path))

    async def _stored(
        self, link: Link, dispatches: Sequence[Json], events: Sequence[ChannelEvent]
    ) -> None:
        self._session = link.stored(dispatches) or self._session
        if not events:
            # What is told again of it after a restart changes nothing.
            return
        messages = [one["d"] for one in dispatches if one.get("t") == "MESSAGE_CREATE"]
        chats = {str(message["channel_id"]) for message in messages} - self._chats.keys()
        if chats:
            self._chats |= dict.fromkeys(chats)
            await self._config.marks.put(_CHATS, json.dumps(list(self._chats)[-_MOST_CHATS:]))
        self._newest = str(messages[-1]["id"]) if messages else self._newest
        await self._keep_place()
        for dispatch in dispatches:
            if dispatch.get("t") == "INTERACTION_CREATE" and dispatch["d"].get("type") == 2:
                self._spawn_answer(dispatch["d"])

    def _spawn_answer(self, interaction: Json) -> None:
        task = asyncio.create_task(self._heard_command(interaction), name="discord:command")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _heard_command(self, interaction: Json) -> None:
        """Tell who gave a command that it is stored; what comes of it is a message of its own."""
        name, id_ = interaction["data"]["name"], interaction["id"]
        self._tokens.pop(f"command:{id_}", None)
        try:
            await self._respond(id_, interaction["token"], f"/{name}")
        except ChannelError as error:
            log.info("command_not_confirmed", error=str(error))

    async def _respond(self, interaction: str, token: str, text: str) -> None:
        nobody: Json = {"parse": []}
        told = {"content": text[:LONGEST], "flags": _EPHEMERAL, "allowed_mentions": nobody}
        path = f"/interactions/{interaction}/{token}/callback"
        await self._api.call("POST", path, {"type": _SPOKEN, "data": told})

    async def _missed(self) -> Sequence[ChannelEvent]:
        """What was said while there was no session to tell of it, as far as chats are known."""
        if self._newest is None:
            return []
        after = codec.snowflake_of(codec.moment_of(self._newest) - _OVERLAP)
        events: list[ChannelEvent] = []
        for chat in list(self._chats)[-_MOST_CHATS:]:
            await self._look_up([chat])
            try:
                path = f"/channels/{chat}/messages?after={after}&limit={_PAGE}"
                found: list[Json] = await self._look(path)
                place: Json = await self._look(f"/channels/{chat}")
            except NotDelivered as error:
                log.info("chat_not_read", chat=chat, error=str(error))
                continue
            guild = {"guild_id": place["guild_id"]} if place.get("guild_id") else {}
            for message in sorted(found, key=lambda one: int(one["id"])):
                told = self._event({"t": "MESSAGE_CREATE", "d": {**message, **guild}})
                events += [] if told is None else [told]
        log.info("missed_messages", found=len(events))
        return events

    # Out

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return codec.render(message)

    def repeated(self, chunk: str) -> str:
        return codec.repeated(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        path = f"/channels/{codec.target(route)}/messages"
        sent = await self._api.call("POST", path, codec.new(chunk, key=key))
        return str(sent["id"])

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        path = f"/channels/{codec.target(route)}/messages/{message}"
        await self._api.call("PATCH", path, codec.changed(chunk))

    async def typing(self, route: Route) -> None:
        await self._api.call("POST", f"/channels/{codec.target(route)}/typing")

    async def answer(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        token = self._tokens.pop(pressed.event, None)
        if token is not None:
            with suppress(NotDelivered):  # it is too old: its buttons go all the same
                await self._respond(pressed.event.removeprefix("press:"), token, text)
        if closed:
            path = f"/channels/{codec.target(pressed.route)}/messages/{pressed.message}"
            await self._api.call("PATCH", path, {"components": codec.outcome(became)})

    async def fetch(self, file: IncomingFile, *, most: int) -> bytes:
        channel, message, attachment = file.id.split("/")
        found: Json = await self._api.call("GET", f"/channels/{channel}/messages/{message}")
        passed_on: list[Json] = found.get("message_snapshots") or []
        messages: list[Json] = [found, *(one.get("message") or {} for one in passed_on)]
        for each in (one for told in messages for one in told.get("attachments", ())):
            if str(each["id"]) == attachment:
                if each.get("size", 0) > most:
                    raise NotDelivered(f"the file has {each['size']:,} bytes")
                return await self._api.download(each["url"], most=most)
        raise NotDelivered("the file is not there any more")
