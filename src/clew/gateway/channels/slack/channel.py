"""The channel: a socket of its own, so that an envelope is acknowledged only once it is stored."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import structlog

from clew.config.secret import Secret
from clew.core.chat import DM, IgnoredEvent, MessageReceived
from clew.engine.log_throttle import LogThrottle
from clew.errors import ChannelError, NotDelivered, SettingsError
from clew.gateway.calls import client
from clew.gateway.channel import Capabilities, Channel, ChannelConfig
from clew.gateway.channels.slack import codec
from clew.gateway.channels.slack.messages import LONGEST, without_buttons
from clew.gateway.channels.slack.socket import Socket
from clew.gateway.channels.slack.transport import Api
from clew.gateway.ignored_events import IgnoredEvents

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from clew.core.chat import ButtonPressed, ChannelEvent, IncomingFile, OutboundMessage
    from clew.core.route import Route

log = structlog.get_logger(__name__)

BASE_URL = "https://slack.com/api/"
#: Seconds between two signs of life.
BEAT = 30.0
#: What a message of ours is known by, in its metadata.
METADATA = "clew_delivery"
#: How many messages back it is looked for, at most.
_PAGES, _PAGE = 5, 200
#: Messages with buttons that were pressed, kept until they are answered.
_MOST_PRESSED = 200
#: Names of people that are kept, and seconds for finding one.
_MOST_NAMES, _NAMING = 1000, 3.0
#: Seconds after which a user group or the beginning of a thread is asked for again.
_ASKED_AGAIN = 3600.0
#: The keys of its table that only this channel knows.
OPTIONS = frozenset({"app_token", "command"})

Json = dict[str, Any]

CAPABILITIES = Capabilities(
    longest=LONGEST,
    unit="characters",
    markup="rich text",
    edits=True,
    threads=True,
    buttons=True,
    files=True,
    read_back=True,
    # Slack's own advice: a message a second in each channel.
    chat_pause={"dm": 1.0, "group": 1.0},
)


def open_channel(config: ChannelConfig) -> Channel:
    """
    What the entry point names.

    :raises SettingsError: if a token is missing or of another kind
    """
    table = f"channels.{config.name}"
    if unknown := sorted(config.options.keys() - OPTIONS):
        raise SettingsError(
            f"{table} has no setting {unknown[0]}; its own are {', '.join(sorted(OPTIONS))}"
        )
    token = "" if config.token is None else config.token.reveal()
    if not token.startswith("xoxb-"):
        raise SettingsError(
            f"{table}.token is no token of a Slack bot, which begins with xoxb-: the app's page "
            "shows it under OAuth & Permissions"
        )
    app_token = config.options.get("app_token")
    revealed = app_token.reveal() if isinstance(app_token, Secret) else str(app_token or "")
    parts = revealed.split("-")
    if parts[0] != "xapp" or len(parts) < 4:
        raise SettingsError(
            f"{table}.app_token is no token of a Slack app, which looks like xapp-1-A0…-…: the "
            "app's page makes one under Basic Information, with the scope connections:write"
        )
    return SlackChannel(config, token=token, app_token=revealed, app=parts[2])


class SlackChannel(Channel):
    """One app in one workspace."""

    platform = codec.PLATFORM

    def __init__(self, config: ChannelConfig, *, token: str, app_token: str, app: str) -> None:
        # Envelopes go to whoever holds the app's token, whatever the workspace.
        self.account = app
        self.capabilities = CAPABILITIES
        self._config, self._token, self._app_token = config, token, app_token
        command = str(config.options.get("command") or "/clew")
        self._me = codec.Me(user="", label=config.label, command=command)
        self._pressed: OrderedDict[str, Json] = OrderedDict()
        self._names: OrderedDict[str, str] = OrderedDict()
        self._ignored, self._asked = IgnoredEvents(config.name), LogThrottle(interval=_ASKED_AGAIN)

    async def __aenter__(self) -> Self:
        self._http = client()
        base_url = self._config.base_url or BASE_URL
        self._api = Api(self._http, token=self._token, app_token=self._app_token, base_url=base_url)
        try:
            me = await self._api.call("auth.test", {})
        except BaseException:
            # Whoever could not enter does not leave: nobody else would close the connections.
            await self._http.close()
            raise
        self._me = codec.Me(
            user=me["user_id"],
            bot=me.get("bot_id"),
            label=self._config.label,
            command=self._me.command,
        )
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.close()

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        while True:
            async with Socket(self._http, await self._api.socket_url()) as socket:
                while not socket.ends:
                    envelopes = await socket.envelopes(seconds=BEAT)
                    yield await self._events(envelopes)
                    # Asked for more: these are stored.
                    await socket.acknowledge(envelopes)

    async def _events(self, envelopes: Sequence[Json]) -> Sequence[ChannelEvent]:
        events: list[ChannelEvent] = []
        for envelope in envelopes:
            await self._look_up_groups(codec.groups_in(envelope))
            if (event := self._parsed(envelope)) is not None:
                events.append(await self._with_parent(envelope, await self._named(event)))
        return events

    async def _look_up_groups(self, groups: frozenset[str]) -> None:
        """Whether the app is in user groups that somebody mentions; asked once an hour."""
        for group in sorted(groups):
            if not self._asked.is_due(("group", group)):
                continue
            asked = {"usergroup": group}
            found = await self._looked("usergroups.users.list", asked) or {}
            inside = self._me.user in (found.get("users") or ())
            left = self._me.groups - {group}
            self._me = replace(self._me, groups=left | {group} if inside else left)

    async def _with_parent(self, envelope: Json, event: ChannelEvent) -> ChannelEvent:
        """Where somebody first speaks to the agent in a thread of others, what it is about."""
        if not isinstance(event, MessageReceived) or not event.addressed:
            return event
        place = codec.thread_of(envelope, self._me)
        if place is None or not self._asked.is_due(("thread", *place)):
            return event
        channel, thread = place
        asked = {"channel": channel, "ts": thread, "limit": "1"}
        found = await self._looked("conversations.replies", asked) or {}
        messages: list[Json] = found.get("messages") or []
        first = next((one for one in messages if one.get("ts") == thread), None)
        if first is None or codec.was_heard(first, self._me):
            return event
        return replace(event, quoted=(codec.parent_of(first, self._me), *event.quoted))

    async def _looked(self, method: str, asked: dict[str, str]) -> Json | None:
        """What a message can do without, if it can be had soon."""
        try:
            async with asyncio.timeout(_NAMING):
                return await self.passing(lambda: self._api.look(method, asked))
        except (TimeoutError, ChannelError) as error:
            log.info("not_looked_up", method=method, error=str(error))
            return None

    def _parsed(self, envelope: Json) -> ChannelEvent | None:
        try:
            event = self._event(envelope)
        except (KeyError, TypeError, ValueError, AttributeError):
            # Passed over: told again and again, it would keep all later ones away.
            log.exception("envelope_not_understood", envelope=envelope.get("envelope_id"))
            return None
        payload: Json = envelope.get("payload") or {}
        message = payload.get("message")
        if event is not None and envelope.get("type") == "interactive" and message:
            self._pressed[event.event] = message
            while len(self._pressed) > _MOST_PRESSED:
                self._pressed.popitem(last=False)
        return event

    def _event(self, envelope: Json) -> ChannelEvent | None:
        found = codec.parse(envelope, self._me)
        if isinstance(found, IgnoredEvent):
            self._ignored.log(found)
            return None
        return found

    async def _named(self, event: ChannelEvent) -> ChannelEvent:
        """Where several people write, the agent hears who: Slack tells only ids."""
        if not isinstance(event, MessageReceived) or event.route.kind == DM or event.sender.name:
            return event
        user = event.sender.id
        if user not in self._names:
            self._names[user] = await self._name_of(user)
            while len(self._names) > _MOST_NAMES:
                self._names.popitem(last=False)
        return replace(event, sender=replace(event.sender, name=self._names[user]))

    async def _name_of(self, user: str) -> str:
        # It is heard without a name rather than late.
        looked = await self._looked("users.info", {"user": user}) or {}
        person: Json = looked.get("user") or {}
        profile: Json = person.get("profile") or {}
        return str(profile.get("display_name") or person.get("real_name") or "")

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return codec.render(message)

    def repeated(self, chunk: str) -> str:
        return codec.repeated(chunk)

    def plain(self, chunk: str) -> str:
        return codec.plain_chunk(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        sent = await self._api.call(
            "chat.postMessage",
            {
                **codec.address(route),
                **codec.parameters(chunk),
                "unfurl_links": False,
                "unfurl_media": False,
                "metadata": {"event_type": METADATA, "event_payload": {"key": key}},
            },
        )
        return str(sent["ts"])

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        target = {"channel": route.chat, "ts": message}
        await self._api.call("chat.update", {**target, **codec.parameters(chunk)})

    async def find(self, route: Route, chunk: str, *, key: str) -> str | None:
        asked = {"channel": route.chat, "limit": str(_PAGE), "include_all_metadata": "true"}
        method = "conversations.history"
        if route.thread is not None:
            method, asked["ts"] = "conversations.replies", route.thread
        for _ in range(_PAGES):
            page = await self._api.look(method, asked)
            for message in page.get("messages", ()):
                if _key_of(message) == key:
                    return str(message["ts"])
            more: Json = page.get("response_metadata") or {}
            if not more.get("next_cursor"):
                return None
            asked["cursor"] = more["next_cursor"]
        return None

    async def answer(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        where = codec.address(pressed.route)
        told = {**where, "user": pressed.sender.id, "text": codec.escape(text), "mrkdwn": False}
        message = self._pressed.pop(pressed.event, None)
        with suppress(NotDelivered):  # who pressed has left: its buttons go all the same
            await self._api.call("chat.postEphemeral", told)
        if closed and message is not None:
            target = {"channel": pressed.route.chat, "ts": pressed.message}
            await self._api.call("chat.update", {**target, **without_buttons(message, became)})

    async def fetch(self, file: IncomingFile, *, most: int) -> bytes:
        looked = await self._api.look("files.info", {"file": file.id})
        found: Json = looked.get("file") or {}
        if found.get("size", 0) > most:
            raise NotDelivered(f"the file has {found['size']:,} bytes")
        url = found.get("url_private_download") or found.get("url_private")
        if not url:
            raise NotDelivered("Slack does not say where the file is")
        return await self._api.download(url, most=most)


def _key_of(message: Json) -> str | None:
    metadata: Json = message.get("metadata") or {}
    payload: Json = metadata.get("event_payload") or {}
    return payload.get("key") if metadata.get("event_type") == METADATA else None
