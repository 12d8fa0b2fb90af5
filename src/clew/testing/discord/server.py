"""The fake server: the REST API, and the gateway with resumable sessions."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from clew.testing.discord.actions import BOT_ID, ROLES, DiscordActions, build_user
from clew.testing.discord.state import (
    GUILD,
    DiscordMessage,
    FakeDiscordError,
    FakeGatewaySession,
    Json,
    find_pings,
    validate_message,
)
from clew.testing.fake_platform import FakeResponse
from clew.testing.multipart import SentBytes, is_multipart, parse_multipart

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing.faults import FaultInjector
    from clew.testing.provider.http import HttpRequest
    from clew.testing.websocket import FakeWebSocket

_PREFIX = "/api/v10"
#: Number of dispatches at the start of every session.
_INITIAL_DISPATCHES = 2


class FakeDiscord(DiscordActions):
    """
    Plays Discord for one bot, on loopback.

    ::

        with FakeDiscord() as discord:
            settings = {"token": discord.token, "base_url": discord.api}
            discord.post_message("Hello", user="42")

    As on Discord, events without a session are delivered to nobody; with ``early`` the
    first session receives the events before it.
    """

    def __init__(
        self,
        *,
        faults: FaultInjector | None = None,
        log: Path | None = None,
        early: bool = False,
        heartbeat: float = 0.05,
    ) -> None:
        super().__init__(faults=faults, log=log, early=early)
        #: Seconds between two heartbeats of a client.
        self._heartbeat = heartbeat
        #: Number of connections opened, sessions started, and sessions resumed.
        self.opened, self.started, self.resumed = 0, 0, 0
        #: Heartbeats are acknowledged.
        self.answers_heartbeats = True
        #: The bot's intents are rejected.
        self.refuses_intents = False
        #: The bot may not send files.
        self.refuses_files = False
        #: Bytes of the largest file that a bot may send.
        self.max_file_bytes = 10 * 1024 * 1024

    @property
    def api_url(self) -> str:
        return f"{self.url}{_PREFIX}"

    # The REST API

    def _is_exempt(self, http: HttpRequest) -> bool:
        return "/messages" not in http.path or http.method == "GET"

    def _handle_call(self, http: HttpRequest, *, throttled: bool) -> FakeResponse:
        if http.path.startswith("/attachments/"):
            found = self._state.files.get(http.path.split("/")[2])
            return FakeResponse(found or b"", 404 if found is None else 200, media="text/plain")
        path = http.path.removeprefix(_PREFIX)
        if "/callback" not in path and http.headers.get("authorization") != f"Bot {self.token}":
            return FakeResponse({"message": "401: Unauthorized", "code": 0}, 401)
        given: Json = _parse_body(http)
        if channel := re.match(r"/channels/(\w+)", path):
            if throttled:
                self.throttle_chat(channel[1], self.faults.draw_wait())
            if refused := self._throttle_response(channel[1]):
                return refused
        return self._dispatch_call(http, path, given)

    def _throttle_response(self, channel: str) -> FakeResponse | None:
        left, everywhere = self._state.throttle_remaining(channel)
        if left <= 0:
            return None
        told = {"message": "You are being rate limited.", "retry_after": left, "global": everywhere}
        headers = {
            "Retry-After": str(self._throttle_seconds(channel, left)),
            "X-RateLimit-Reset-After": f"{left:.3f}",
        }
        headers["X-RateLimit-Scope"] = "global" if everywhere else "user"
        self._write_log(n=self._next_number(), channel=channel, status=429)
        return FakeResponse(told, 429, headers)

    def _dispatch_call(self, http: HttpRequest, path: str, given: Json) -> FakeResponse:
        for method, pattern, name in _ROUTES:
            if method == http.method and (found := re.fullmatch(pattern, path)):
                try:
                    query = dict(parse_qsl(http.query))
                    answer = getattr(self, name)(
                        *found.groups(), given={**query, **_as_mapping(given)}
                    )
                except FakeDiscordError as refusal:
                    told = {"message": refusal.message, "code": refusal.code}
                    return FakeResponse(told, refusal.status)
                return FakeResponse(answer) if answer is not None else FakeResponse(b"", 204)
        return FakeResponse({"message": "404: Not Found", "code": 0}, 404)

    def _get_me(self, given: Json) -> Json:
        return self.me

    def _get_application(self, given: Json) -> Json:
        return {
            "id": BOT_ID,
            "name": "clew",
            "description": "",
            "icon": None,
            "bot_public": True,
            "bot_require_code_grant": False,
            "owner": build_user("42"),
            "verify_key": "",
            "flags": 0,
        }

    def _get_gateway(self, given: Json) -> Json:
        limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
        url = self.url.replace("http", "ws")
        return {"url": f"{url}/gateway", "shards": 1, "session_start_limit": limit}

    def _set_commands(self, app: str, given: Json) -> list[Json]:
        self._state.commands = given["items"]
        return self._state.commands

    def _get_channel(self, channel: str, given: Json) -> Json:
        self._state.writable_messages(channel)
        return self._state.channels[channel]

    def _get_roles(self, guild: str, given: Json) -> list[Json]:
        return ROLES

    def _show_typing(self, channel: str, given: Json) -> None:
        self._state.writable_messages(channel)

    def _create_message(self, channel: str, given: Json) -> Json:
        messages = self._state.writable_messages(channel)
        document: str | None = given.get("document")
        text = validate_message(given) if document is None else str(given.get("content", ""))
        if document is not None and self.refuses_files:
            raise FakeDiscordError(403, 50013, "Missing Permissions")
        if document is not None and len(given["file"].content) > self.max_file_bytes:
            raise FakeDiscordError(413, 40005, "Request entity too large")
        nonce = str(given.get("nonce") or "")
        if given.get("enforce_nonce") and (before := self._state.find_by_nonce(channel, nonce)):
            return {**before.to_json(), "nonce": nonce}
        n = self._next_number()
        reference: Json = given.get("message_reference") or {}
        message = DiscordMessage(
            self._state.next_id(),
            channel,
            self.me,
            text,
            components=given.get("components") or [],
            reply_to=reference.get("message_id"),
            pings=find_pings(given),
            texts=[text],
            document=document,
            file=given.get("file"),
            sent_n=n,
            changed_n=n,
        )
        messages[message.id] = message
        self._state.store_nonce(message, nonce)
        self._write_log(n=n, channel=channel, status=200, id=message.id, text=text)
        # The bot receives its own messages, too.
        self._add_dispatch("MESSAGE_CREATE", {**message.to_json(), **self._channel_fields(channel)})
        return {**message.to_json(), "nonce": nonce}

    def _edit_message(self, channel: str, message: str, given: Json) -> Json:
        found = self._state.get_message(channel, message)
        if found.author["id"] != BOT_ID:
            raise FakeDiscordError(403, 50005, "Cannot edit a message authored by another user")
        if "content" in given:
            found.content = validate_message(given)
            found.texts.append(found.content)
            found.pings += find_pings(given)
        found.components = given.get("components", found.components)
        found.changed_n = self._next_number()
        self._write_log(
            n=found.changed_n, channel=channel, status=200, id=message, edit=found.content
        )
        return found.to_json()

    def _get_message(self, channel: str, message: str, given: Json) -> Json:
        return self._state.get_message(channel, message).to_json()

    def _list_messages(self, channel: str, given: Json) -> list[Json]:
        after = int(given.get("after", 0))
        found = [
            one for one in self._state.writable_messages(channel).values() if int(one.id) > after
        ]
        newest = sorted(found, key=lambda one: int(one.id))[: int(given.get("limit", 50))]
        return [one.to_json() for one in reversed(newest)]

    def _respond_interaction(self, interaction: str, token: str, given: Json) -> None:
        if token != f"token-{interaction}" or interaction in self._state.interaction_responses:
            raise FakeDiscordError(404, 10062, "Unknown interaction")
        self._state.interaction_responses[interaction] = given

    # The gateway

    def request_reconnect(self) -> None:
        """Ask every client to reconnect."""
        self._for_each_socket(lambda there: there.send({"op": 7, "d": None}))

    def invalidate_sessions(self, *, resumable: bool) -> None:
        """Tell every client that its session is invalid."""
        self._for_each_socket(lambda there: there.send({"op": 9, "d": resumable}))

    def close_connections(self, code: int) -> None:
        """Close every connection with a code."""
        self._for_each_socket(lambda there: there.close(code))

    async def _serve_socket(self, http: HttpRequest, there: FakeWebSocket) -> None:
        self.opened += 1
        there.send({"op": 10, "d": {"heartbeat_interval": int(self._heartbeat * 1000)}})
        telling: asyncio.Task[None] | None = None
        session: FakeGatewaySession | None = None
        try:
            while (said := await there.receive()) is not None:
                if said["op"] == 1:
                    self._handle_heartbeat(there, session, said["d"])
                elif telling is None and (found := self._find_session(there, said)):
                    session, after = found
                    telling = asyncio.create_task(self._push_events(there, session, after))
        finally:
            if telling is not None:
                telling.cancel()

    def _handle_heartbeat(
        self, there: FakeWebSocket, session: FakeGatewaySession | None, seq: int | None
    ) -> None:
        if session is not None and seq is not None:
            session.acknowledged = max(session.acknowledged, seq)
        if seq is not None and seq > _INITIAL_DISPATCHES:
            # A client is listening: from now on behave as Discord does.
            self._early = None
        if self.answers_heartbeats:
            there.send({"op": 11})

    def _find_session(
        self, there: FakeWebSocket, said: Any
    ) -> tuple[FakeGatewaySession, int] | None:
        """Return the session that a client asks for, and its last sequence number."""
        told: Json = said["d"]
        if told["token"].removeprefix("Bot ") != self.token:
            there.close(4004, "Authentication failed")
            return None
        with self._lock:
            if said["op"] == 2:
                return self._start_session(there)
            session = self._state.sessions.get(told.get("session_id", ""))
            if session is None:
                there.send({"op": 9, "d": False})
                return None
            self.resumed += 1
            session.acknowledged = max(session.acknowledged, told["seq"])
            return session, told["seq"]

    def _start_session(self, there: FakeWebSocket) -> tuple[FakeGatewaySession, int] | None:
        if self.refuses_intents:
            there.close(4014, "Disallowed intent(s)")
            return None
        self.started += 1
        # A client has one session: earlier ones receive nothing more.
        self._state.sessions.clear()
        session = FakeGatewaySession(id=f"session-{self.started}")
        self._state.sessions[session.id] = session
        channels = list(self._state.channels.values())
        ready = {
            "v": 10,
            "user": self.me,
            "guilds": [{"id": GUILD, "unavailable": True}],
            "session_id": session.id,
            "resume_gateway_url": f"{self.url.replace('http', 'ws')}/gateway",
            "application": {"id": BOT_ID, "flags": 0},
            "private_channels": [],
        }
        session.add_dispatch("READY", ready)
        guild = {
            "id": GUILD,
            "name": "Guild",
            "owner_id": "42",
            "channels": [one for one in channels if one["type"] == 0],
            "threads": [one for one in channels if one["type"] == 11],
            "members": [],
            "roles": ROLES,
            "emojis": [],
            "stickers": [],
        }
        session.add_dispatch("GUILD_CREATE", guild)
        for kind, content in self._early or ():
            session.add_dispatch(kind, content)
        return session, 0

    async def _push_events(
        self, there: FakeWebSocket, session: FakeGatewaySession, after: int
    ) -> None:
        resumed = after > 0
        while True:
            self._news.clear()
            with self._lock:
                due = session.dispatches[after:]
                if resumed:
                    session.add_dispatch("RESUMED", {})
                    due, resumed = session.dispatches[after:], False
            for frame in due:
                there.send(frame)
                if self.faults.draw_chance(self.faults.duplicated):
                    there.send(frame)
            after += len(due)
            await self._wait_for_news(0.2)


_ROUTES = [
    ("GET", r"/users/@me", "_get_me"),
    ("GET", r"/(?:oauth2/)?applications/@me", "_get_application"),
    ("GET", r"/gateway/bot", "_get_gateway"),
    ("PUT", r"/applications/(\w+)/commands", "_set_commands"),
    ("GET", r"/guilds/(\w+)/roles", "_get_roles"),
    ("GET", r"/channels/(\w+)", "_get_channel"),
    ("POST", r"/channels/(\w+)/typing", "_show_typing"),
    ("POST", r"/channels/(\w+)/messages", "_create_message"),
    ("GET", r"/channels/(\w+)/messages", "_list_messages"),
    ("GET", r"/channels/(\w+)/messages/(\w+)", "_get_message"),
    ("PATCH", r"/channels/(\w+)/messages/(\w+)", "_edit_message"),
    ("POST", r"/interactions/(\w+)/([\w-]+)/callback", "_respond_interaction"),
]


def _parse_body(http: HttpRequest) -> Any:
    if is_multipart(http):
        fields, files = parse_multipart(http)
        (file,) = files.values()
        said: Json = json.loads(fields["payload_json"])
        return {**said, "document": file[1].decode(errors="replace"), "file": SentBytes(*file)}
    return json.loads(http.body) if http.body[:1] in (b"{", b"[") else {}


def _as_mapping(given: Any) -> Json:
    return {"items": given} if isinstance(given, list) else given
