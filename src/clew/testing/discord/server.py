"""The server: the REST API, and the gateway with sessions that can be taken up again."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from clew.testing.discord.people import BOT, ROLES, People, person
from clew.testing.discord.world import GUILD, Json, Message, Refusal, Session, checked, pings
from clew.testing.platform import Reply

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing.provider.http import HttpRequest
    from clew.testing.telegram.faults import Faults
    from clew.testing.websocket import WebSocket

_PREFIX = "/api/v10"
#: Dispatches that every session begins with.
_GREETING = 2


class FakeDiscord(People):
    """
    Plays Discord for one bot, on loopback.

    ::

        with FakeDiscord() as discord:
            settings = {"token": discord.token, "base_url": discord.api}
            discord.say("Hello", user="42")

    As on Discord, what happens while there is no session is told to nobody; with ``early`` the
    first session is told what came before it.
    """

    def __init__(
        self,
        *,
        faults: Faults | None = None,
        log: Path | None = None,
        early: bool = False,
        heartbeat: float = 0.05,
    ) -> None:
        super().__init__(faults=faults, log=log, early=early)
        #: Seconds between two signs of life that a client has to give.
        self._heartbeat = heartbeat
        #: How many connections were opened, sessions begun and taken up.
        self.opened, self.begun, self.resumed = 0, 0, 0
        #: Whether heartbeats are answered.
        self.answers_heartbeats = True
        #: Whether what the bot asks to hear is refused.
        self.refuses_intents = False

    @property
    def api(self) -> str:
        return f"{self.url}{_PREFIX}"

    # The REST API

    def _is_spared(self, http: HttpRequest) -> bool:
        return "/messages" not in http.path or http.method == "GET"

    def _carry_out(self, http: HttpRequest, *, throttled: bool) -> Reply:
        if http.path.startswith("/attachments/"):
            found = self._world.files.get(http.path.split("/")[2])
            return Reply(found or b"", 404 if found is None else 200, media="text/plain")
        path = http.path.removeprefix(_PREFIX)
        if "/callback" not in path and http.headers.get("authorization") != f"Bot {self.token}":
            return Reply({"message": "401: Unauthorized", "code": 0}, 401)
        given: Json = json.loads(http.body) if http.body[:1] in (b"{", b"[") else {}
        if channel := re.match(r"/channels/(\w+)", path):
            if throttled:
                self.throttle(channel[1], self.faults.wait())
            if refused := self._refused(channel[1]):
                return refused
        return self._handled(http, path, given)

    def _refused(self, channel: str) -> Reply | None:
        left, everywhere = self._world.wait(channel)
        if left <= 0:
            return None
        told = {"message": "You are being rate limited.", "retry_after": left, "global": everywhere}
        headers = {
            "Retry-After": str(self._waits(channel, left)),
            "X-RateLimit-Reset-After": f"{left:.3f}",
        }
        headers["X-RateLimit-Scope"] = "global" if everywhere else "user"
        self._write(n=self._count(), channel=channel, status=429)
        return Reply(told, 429, headers)

    def _handled(self, http: HttpRequest, path: str, given: Json) -> Reply:
        for method, pattern, name in _ROUTES:
            if method == http.method and (found := re.fullmatch(pattern, path)):
                try:
                    query = dict(parse_qsl(http.query))
                    answer = getattr(self, name)(*found.groups(), given={**query, **_named(given)})
                except Refusal as refusal:
                    told = {"message": refusal.message, "code": refusal.code}
                    return Reply(told, refusal.status)
                return Reply(answer) if answer is not None else Reply(b"", 204)
        return Reply({"message": "404: Not Found", "code": 0}, 404)

    def _show_me(self, given: Json) -> Json:
        return self.me

    def _application(self, given: Json) -> Json:
        return {
            "id": BOT,
            "name": "clew",
            "description": "",
            "icon": None,
            "bot_public": True,
            "bot_require_code_grant": False,
            "owner": person("42"),
            "verify_key": "",
            "flags": 0,
        }

    def _gateway(self, given: Json) -> Json:
        limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
        url = self.url.replace("http", "ws")
        return {"url": f"{url}/gateway", "shards": 1, "session_start_limit": limit}

    def _list_commands(self, app: str, given: Json) -> list[Json]:
        self._world.commands = given["items"]
        return self._world.commands

    def _channel(self, channel: str, given: Json) -> Json:
        self._world.writable(channel)
        return self._world.channels[channel]

    def _roles(self, guild: str, given: Json) -> list[Json]:
        return ROLES

    def _typing(self, channel: str, given: Json) -> None:
        self._world.writable(channel)

    def _post(self, channel: str, given: Json) -> Json:
        messages = self._world.writable(channel)
        text, nonce = checked(given), str(given.get("nonce") or "")
        if given.get("enforce_nonce") and (before := self._world.by_nonce(channel, nonce)):
            return {**before.told(), "nonce": nonce}
        n = self._count()
        reference: Json = given.get("message_reference") or {}
        message = Message(
            self._world.next_id(),
            channel,
            self.me,
            text,
            components=given.get("components") or [],
            reply_to=reference.get("message_id"),
            pings=pings(given),
            texts=[text],
            sent_n=n,
            changed_n=n,
        )
        messages[message.id] = message
        self._world.keep_nonce(message, nonce)
        self._write(n=n, channel=channel, status=200, id=message.id, text=text)
        # The bot is told of its own messages, too.
        self._dispatch("MESSAGE_CREATE", {**message.told(), **self._place(channel)})
        return {**message.told(), "nonce": nonce}

    def _patch(self, channel: str, message: str, given: Json) -> Json:
        found = self._world.message(channel, message)
        if found.author["id"] != BOT:
            raise Refusal(403, 50005, "Cannot edit a message authored by another user")
        if "content" in given:
            found.content = checked(given)
            found.texts.append(found.content)
            found.pings += pings(given)
        found.components = given.get("components", found.components)
        found.changed_n = self._count()
        self._write(n=found.changed_n, channel=channel, status=200, id=message, edit=found.content)
        return found.told()

    def _message(self, channel: str, message: str, given: Json) -> Json:
        return self._world.message(channel, message).told()

    def _messages(self, channel: str, given: Json) -> list[Json]:
        after = int(given.get("after", 0))
        found = [one for one in self._world.writable(channel).values() if int(one.id) > after]
        newest = sorted(found, key=lambda one: int(one.id))[: int(given.get("limit", 50))]
        return [one.told() for one in reversed(newest)]

    def _callback(self, interaction: str, token: str, given: Json) -> None:
        if token != f"token-{interaction}" or interaction in self._world.answered:
            raise Refusal(404, 10062, "Unknown interaction")
        self._world.answered[interaction] = given

    # The gateway

    def reconnect(self) -> None:
        """Ask every client for another connection."""
        self._each_socket(lambda there: there.send({"op": 7, "d": None}))

    def invalidate(self, *, resumable: bool) -> None:
        """Tell every client that its session is over."""
        self._each_socket(lambda there: there.send({"op": 9, "d": resumable}))

    def close(self, code: int) -> None:
        """Every connection is ended, for a reason."""
        self._each_socket(lambda there: there.close(code))

    async def _opened(self, http: HttpRequest, there: WebSocket) -> None:
        self.opened += 1
        there.send({"op": 10, "d": {"heartbeat_interval": int(self._heartbeat * 1000)}})
        telling: asyncio.Task[None] | None = None
        session: Session | None = None
        try:
            while (said := await there.receive()) is not None:
                if said["op"] == 1:
                    self._alive(there, session, said["d"])
                elif telling is None and (found := self._session(there, said)):
                    session, after = found
                    telling = asyncio.create_task(self._tell(there, session, after))
        finally:
            if telling is not None:
                telling.cancel()

    def _alive(self, there: WebSocket, session: Session | None, seq: int | None) -> None:
        if session is not None and seq is not None:
            session.acknowledged = max(session.acknowledged, seq)
        if seq is not None and seq > _GREETING:
            # Somebody has begun to listen: from now on it is as on Discord.
            self._early = None
        if self.answers_heartbeats:
            there.send({"op": 11})

    def _session(self, there: WebSocket, said: Any) -> tuple[Session, int] | None:
        """The session that a client asks for, and what it has of it."""
        told: Json = said["d"]
        if told["token"].removeprefix("Bot ") != self.token:
            there.close(4004, "Authentication failed")
            return None
        with self._lock:
            if said["op"] == 2:
                return self._new_session(there)
            session = self._world.sessions.get(told.get("session_id", ""))
            if session is None:
                there.send({"op": 9, "d": False})
                return None
            self.resumed += 1
            session.acknowledged = max(session.acknowledged, told["seq"])
            return session, told["seq"]

    def _new_session(self, there: WebSocket) -> tuple[Session, int] | None:
        if self.refuses_intents:
            there.close(4014, "Disallowed intent(s)")
            return None
        self.begun += 1
        # A client has one session: of the ones before nothing is told any more.
        self._world.sessions.clear()
        session = Session(id=f"session-{self.begun}")
        self._world.sessions[session.id] = session
        channels = list(self._world.channels.values())
        ready = {
            "v": 10,
            "user": self.me,
            "guilds": [{"id": GUILD, "unavailable": True}],
            "session_id": session.id,
            "resume_gateway_url": f"{self.url.replace('http', 'ws')}/gateway",
            "application": {"id": BOT, "flags": 0},
            "private_channels": [],
        }
        session.dispatch("READY", ready)
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
        session.dispatch("GUILD_CREATE", guild)
        for kind, content in self._early or ():
            session.dispatch(kind, content)
        return session, 0

    async def _tell(self, there: WebSocket, session: Session, after: int) -> None:
        resumed = after > 0
        while True:
            self._news.clear()
            with self._lock:
                due = session.told[after:]
                if resumed:
                    session.dispatch("RESUMED", {})
                    due, resumed = session.told[after:], False
            for frame in due:
                there.send(frame)
                if self.faults.happens(self.faults.duplicated):
                    there.send(frame)
            after += len(due)
            await self._until_news(0.2)


_ROUTES = [
    ("GET", r"/users/@me", "_show_me"),
    ("GET", r"/(?:oauth2/)?applications/@me", "_application"),
    ("GET", r"/gateway/bot", "_gateway"),
    ("PUT", r"/applications/(\w+)/commands", "_list_commands"),
    ("GET", r"/guilds/(\w+)/roles", "_roles"),
    ("GET", r"/channels/(\w+)", "_channel"),
    ("POST", r"/channels/(\w+)/typing", "_typing"),
    ("POST", r"/channels/(\w+)/messages", "_post"),
    ("GET", r"/channels/(\w+)/messages", "_messages"),
    ("GET", r"/channels/(\w+)/messages/(\w+)", "_message"),
    ("PATCH", r"/channels/(\w+)/messages/(\w+)", "_patch"),
    ("POST", r"/interactions/(\w+)/([\w-]+)/callback", "_callback"),
]


def _named(given: Any) -> Json:
    return {"items": given} if isinstance(given, list) else given
