"""The Mattermost channel: what was missed is read from the channels after each connection."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote, urlsplit

import structlog

from clew.core.channel_events import IgnoredEvent, MessageReceived
from clew.core.payload import as_object, as_objects, as_text
from clew.errors import ChannelError, NotDelivered, SettingsError
from clew.gateway.channel import Channel, ChannelCapabilities, ChannelConfig
from clew.gateway.channels.mattermost import codec, messages
from clew.gateway.channels.mattermost.connection import MattermostConnection
from clew.gateway.channels.mattermost.messages import MAX_LENGTH
from clew.gateway.channels.mattermost.position import ReadPosition
from clew.gateway.channels.mattermost.transport import MattermostApi
from clew.gateway.http import PlatformHttp
from clew.gateway.ignored_events import IgnoredEventLog
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType

    from clew.core.channel_events import ChannelEvent, IncomingFile, OutboundMessage
    from clew.core.route import Route
    from clew.core.sent_files import SentFile

log = structlog.get_logger(__name__)

#: Seconds between two keepalive batches.
KEEPALIVE_INTERVAL: Final = 30.0
#: Key in the channel storage: the read position.
_POSITION: Final = "place"
#: Pages of a channel that are searched for a post, and their size.
_MAX_PAGES, _PAGE_SIZE = 5, 100
#: The most posts that the server lists since a time.
_MAX_SINCE: Final = 1000
#: Maximum names that are kept.
_MAX_NAMES: Final = 1000
#: The channel's own settings keys.
OPTIONS: Final = frozenset({"user"})

CAPABILITIES = ChannelCapabilities(
    max_length=MAX_LENGTH,
    unit="UTF-16 code units",
    markup="Markdown",
    edits=True,
    threads=True,
    documents=True,
    # The default of the server (MaxFileSize).
    max_file_bytes=100 * 1024 * 1024,
    typing=True,
    files=True,
    read_back=True,
    # The default of the server: ten calls per second.
    account_pause=0.1,
)

Json = dict[str, Any]


def open_channel(config: ChannelConfig) -> Channel:
    """
    Create the channel; the entry point names this function.

    :raises SettingsError: if the server, the bot or its token is missing
    """
    table = f"channels.{config.name}"
    if unknown := sorted(config.options.keys() - OPTIONS):
        raise SettingsError(f"{table} has no setting {unknown[0]}; its own is user")
    token = "" if config.token is None else config.token.reveal().strip()
    if not token:
        raise SettingsError(f"{table}.token is missing: create one on the page of the bot")
    address = urlsplit(config.base_url or "")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise SettingsError(
            f"{table}.base_url is not the address of the server, such as https://chat.example.org"
        )
    user = str(config.options.get("user") or "").removeprefix("@").strip().lower()
    if not user:
        raise SettingsError(f"{table}.user is missing: the user name of the bot, such as clew")
    return MattermostChannel(config, token=token, user=user)


class MattermostChannel(Channel):
    """The channel of one bot on one server."""

    platform = codec.PLATFORM

    def __init__(self, config: ChannelConfig, *, token: str, user: str) -> None:
        self._config, self._token = config, token
        self._base_url = (config.base_url or "").rstrip("/")
        self.account = f"{urlsplit(self._base_url).netloc}/{user}"
        self.capabilities = CAPABILITIES
        self._identity = codec.MattermostIdentity(
            id="",
            name=user,
            label=config.label,
            commands=frozenset(name for name, _ in config.commands),
        )
        self._ignored = IgnoredEventLog(config.name)
        #: The type of each known channel, and the names of people.
        self._types: dict[str, str] = {}
        self._names: OrderedDict[str, str] = OrderedDict()
        self._position: ReadPosition | None = None

    async def __aenter__(self) -> Self:
        self._http = PlatformHttp("Mattermost")
        self._api = MattermostApi(self._http, token=self._token, base_url=self._base_url)
        try:
            await self._identify()
        except BaseException:
            # A failed __aenter__ is not followed by __aexit__: close the connections here.
            await self._http.aclose()
            raise
        stored = await self._config.storage.get(_POSITION)
        self._position = None if stored is None else ReadPosition.from_json(stored)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def _identify(self) -> None:
        me = as_object(await self._api.call_api("GET", "/users/me"))
        name = as_text(me.get("username")).lower()
        if name != self._identity.name:
            raise SettingsError(
                f"the token is that of {name!r}, and channels.{self._config.name}.user is "
                f"{self._identity.name!r}: make them the same"
            )
        self._identity = replace(self._identity, id=as_text(me["id"]))

    # Incoming

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        while True:
            async with MattermostConnection(self._api.socket_url, self._token) as link:
                # Read once the socket is open, so that nothing falls in between.
                missed: list[Json] = []
                async for posts in self._iter_missed():
                    yield await self._parse_posts(posts)
                    missed += posts
                # Only now: another channel may have had older ones.
                await self._store_position(missed)
                while True:
                    frames = await link.read_frames(seconds=KEEPALIVE_INTERVAL)
                    yield await self._parse_frames(frames)
                    # The next batch was requested: these are stored.
                    found = (codec.read_post(frame) for frame in frames)
                    await self._store_position([post for post in found if post])

    async def _iter_missed(self) -> AsyncIterator[Sequence[Json]]:
        """Yield the posts that were written or changed while there was no connection."""
        listed = as_objects(await self._get_limited(f"/users/{self._identity.id}/channels"))
        self._types |= {as_text(one["id"]): as_text(one.get("type")) for one in listed}
        last = {as_text(one["id"]): int(one.get("last_post_at") or 0) for one in listed}
        if self._position is None:
            # What was written before the agent came is not answered.
            self._position = ReadPosition(newest=max(last.values(), default=0))
            await self._config.storage.put(_POSITION, self._position.to_json())
            return
        since = self._position.since
        for channel, at in sorted(last.items(), key=lambda one: one[1]):
            if at >= since:
                posts = await self._list_since(channel, since)
                yield [post for post in posts if not self._position.has_stored(post)]

    async def _list_since(self, channel: str, since: int) -> Sequence[Json]:
        path = f"/channels/{channel}/posts"
        posts = await self._list_limited(f"{path}?since={since}")
        if len(posts) < _MAX_SINCE:
            return posts
        # Those are the newest only.
        found = {post["id"]: post for post in posts}
        for page in itertools.count():
            more = await self._list_limited(f"{path}?page={page}&per_page={_PAGE_SIZE}")
            found |= {post["id"]: post for post in more}
            if len(more) < _PAGE_SIZE or int(more[0].get("create_at") or 0) < since:
                break
        return sorted(found.values(), key=lambda one: int(one.get("create_at") or 0))

    async def _list_limited(self, path: str) -> Sequence[Json]:
        return await self.rate_limited(lambda: self._api.list_posts(path))

    async def _parse_posts(self, posts: Sequence[Json]) -> Sequence[ChannelEvent]:
        found = [self._parse(lambda post=post: self._parse_post(post)) for post in posts]
        return [await self._add_name(event) for event in found if event is not None]

    def _parse_post(self, post: Json) -> ChannelEvent | IgnoredEvent:
        return codec.parse_post(post, self._identity, self._types)

    async def _parse_frames(self, frames: Sequence[Json]) -> Sequence[ChannelEvent]:
        events: list[ChannelEvent] = []
        for frame in frames:
            await self._learn_type(frame)
            event = self._parse(
                lambda frame=frame: codec.parse_frame(frame, self._identity, self._types)
            )
            if event is not None:
                events.append(await self._add_name(event))
        return events

    def _parse(self, parse: Callable[[], ChannelEvent | IgnoredEvent]) -> ChannelEvent | None:
        try:
            found = parse()
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            # Skipped: received again for ever, it would block all later ones.
            log.exception("post_not_understood")
            return None
        if isinstance(found, IgnoredEvent):
            if found.kind != "quiet":
                self._ignored.log_once(found)
            return None
        return found

    async def _learn_type(self, frame: Json) -> None:
        """Learn the type of a post's channel: edits and deletions do not tell it."""
        if (told := codec.read_channel_type(frame)) is not None:
            self._types[told[0]] = told[1]
        channel = as_text((codec.read_post(frame) or {}).get("channel_id"))
        if channel and channel not in self._types:
            try:
                found = as_object(await self._get_limited(f"/channels/{quote(channel)}"))
                self._types[channel] = as_text(found.get("type"))
            except NotDelivered:
                self._types[channel] = ""

    async def _add_name(self, event: ChannelEvent) -> ChannelEvent:
        """Add the sender's name: posts that are read from a channel have only ids."""
        if not isinstance(event, MessageReceived) or event.sender.name:
            return event
        user = event.sender.id
        if user not in self._names:
            self._names[user] = await self._look_up_name(user)
            while len(self._names) > _MAX_NAMES:
                self._names.popitem(last=False)
        return replace(event, sender=replace(event.sender, name=self._names[user]))

    async def _look_up_name(self, user: str) -> str:
        try:
            found = as_object(await self._get_limited(f"/users/{quote(user)}"))
        except ChannelError as error:
            log.info("name_not_found", user=user, error=str(error))
            return ""
        return as_text(found.get("username"))

    async def _get_limited(self, path: str) -> Any:
        return await self.rate_limited(lambda: self._api.call_api("GET", path))

    async def _store_position(self, posts: Sequence[Json]) -> None:
        if posts and self._position is not None:
            self._position = self._position.advance(posts)
            await self._config.storage.put(_POSITION, self._position.to_json())

    # Outgoing

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return messages.render(message)

    def render_file(self, file: SentFile) -> str:
        return messages.render_file(file)

    def with_repeat_notice(self, chunk: str) -> str:
        return messages.with_repeat_notice(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        if (file := messages.build_file(chunk)) is not None:
            return await self._post_file(route, chunk, *file, key=key)
        return await self._create_post(route, chunk, key=key)

    async def send_file(self, route: Route, chunk: str, content: bytes, *, key: str) -> str:
        return await self._post_file(route, chunk, messages.read_file_name(chunk), content, key=key)

    async def _post_file(
        self, route: Route, chunk: str, name: str, content: bytes, *, key: str
    ) -> str:
        # Nobody sees it before the post that names it.
        file = await self._api.upload_file(route.chat, name, content)
        return await self._create_post(route, chunk, key=key, files=[file])

    async def _create_post(
        self, route: Route, chunk: str, *, key: str, files: Sequence[str] = ()
    ) -> str:
        post = messages.build_post(route, chunk, key=key, files=files)
        sent = as_object(await self._api.call_api("POST", "/posts", post))
        return as_text(sent["id"])

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        path = f"/posts/{quote(message)}/patch"
        await self._api.call_api("PUT", path, messages.build_edit(chunk))

    async def find_message(self, route: Route, chunk: str, *, key: str) -> str | None:
        for page in range(_MAX_PAGES):
            path = f"/channels/{quote(route.chat)}/posts?page={page}&per_page={_PAGE_SIZE}"
            posts = await self._api.list_posts(path)
            if (found := messages.find_own_post(posts, key)) is not None:
                return found
            if len(posts) < _PAGE_SIZE:
                break
        return None

    async def show_typing(self, route: Route) -> None:
        told = {"channel_id": route.chat, "parent_id": route.thread or ""}
        await self._api.call_api("POST", "/users/me/typing", told)

    async def fetch_file(self, file: IncomingFile, *, most: int) -> bytes:
        return await self._api.download_file(file.id, most=most)
