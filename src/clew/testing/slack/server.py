"""The server: the web API, and sockets over which envelopes are told until acknowledged."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from clew.testing.platform import Json, Reply
from clew.testing.slack.people import BOT, BOT_USER, TEAM, People
from clew.testing.slack.world import Envelope, Message, Refusal, checked, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.testing.provider.http import HttpRequest
    from clew.testing.telegram.faults import Faults
    from clew.testing.websocket import WebSocket

#: Methods that faults spare: without them nothing would begin.
_SPARED = ("auth.test", "apps.connections.open", "users.info")


class FakeSlack(People):
    """
    Plays Slack for one app, on loopback.

    ::

        with FakeSlack() as slack:
            settings = {"token": slack.token, "app_token": slack.app_token, "base_url": slack.api}
            slack.say("Hello", user="U42")
    """

    def __init__(
        self,
        *,
        token: str = "xoxb-fake-bot-token",
        app_token: str = "xapp-1-A0FAKE-1-fake-app-token",
        faults: Faults | None = None,
        log: Path | None = None,
        patience: float = 3.0,
    ) -> None:
        super().__init__(faults=faults, log=log)
        self.token, self.app_token = token, app_token
        #: Seconds after which an envelope that is not acknowledged is told again.
        self._patience = patience
        #: How many sockets were opened.
        self.opened = 0

    @property
    def api(self) -> str:
        return f"{self.url}/api/"

    # The web API

    def _is_spared(self, http: HttpRequest) -> bool:
        return http.path.removeprefix("/api/") in _SPARED

    def _carry_out(self, http: HttpRequest, *, throttled: bool) -> Reply:
        method = http.path.removeprefix("/api/")
        token = http.headers.get("authorization", "").removeprefix("Bearer ")
        wanted = self.app_token if method == "apps.connections.open" else self.token
        if token != wanted:
            return Reply({"ok": False, "error": "invalid_auth"})
        if http.path.startswith("/files-pri/"):
            found = self._world.files.get(http.path.split("/")[2])
            media = "application/octet-stream"
            return Reply(found[1] if found else b"", 200 if found else 404, media=media)
        return self._called(method, _given(http), throttled=throttled)

    def _called(self, method: str, given: Json, *, throttled: bool) -> Reply:
        channel = given.get("channel")
        if channel is not None:
            if throttled:
                self._world.throttle(channel, self.faults.wait())
            if (left := self._world.wait(channel)) > 0:
                self._told(method, given, "ratelimited")
                after = {"Retry-After": str(self._waits(channel, left))}
                return Reply({"ok": False, "error": "ratelimited"}, 429, after)
        try:
            if method not in _METHODS:
                raise Refusal("unknown_method")
            answer = getattr(self, _METHODS[method])(given)
        except Refusal as refusal:
            self._told(method, given, refusal.name)
            return Reply({"ok": False, "error": refusal.name, **refusal.more})
        self._told(method, given, "")
        return Reply({"ok": True, **answer})

    def _told(self, method: str, given: Json, error: str) -> None:
        n = self._count()
        if method.startswith("chat."):
            self._write(n=n, method=method, error=error, given=given)

    def _auth_test(self, given: Json) -> Json:
        return {"user_id": BOT_USER, "bot_id": BOT, "team_id": TEAM, "user": "clew"}

    def _open(self, given: Json) -> Json:
        ticket = self._world.next_id()
        return {"url": f"{self.url.replace('http', 'ws')}/link?ticket={ticket}"}

    def _post(self, given: Json) -> Json:
        channel = self._world.writable(given["channel"])
        text, blocks = self._checked(given)
        n = self._count()
        message = Message(
            ts=self._world.next_ts(),
            channel=given["channel"],
            text=text,
            user=BOT_USER,
            blocks=blocks,
            thread=given.get("thread_ts"),
            metadata=given.get("metadata"),
            by_app=True,
            texts=[shown(text, blocks)],
            sent_n=n,
            changed_n=n,
        )
        channel[message.ts] = message
        return {"ts": message.ts, "channel": message.channel, "message": message.told()}

    def _update(self, given: Json) -> Json:
        message = self._world.message(given["channel"], given["ts"])
        message.text, message.blocks = self._checked(given)
        message.texts.append(shown(message.text, message.blocks))
        message.changed_n = self._count()
        return {"ts": message.ts, "channel": message.channel, "text": message.text}

    def _checked(self, given: Json) -> tuple[str, list[Json]]:
        text, blocks = checked(given)
        if blocks and self.refuse_blocks:
            raise Refusal("invalid_blocks")
        return text, blocks

    def _whisper(self, given: Json) -> Json:
        self._world.writable(given["channel"])
        self._world.whispered.append((given["channel"], given["user"], given["text"]))
        return {"message_ts": self._world.next_ts()}

    def _history(self, given: Json) -> Json:
        every = list(self._world.writable(given["channel"]).values())
        return _page([one for one in reversed(every) if one.thread in (None, one.ts)], given)

    def _replies(self, given: Json) -> Json:
        every = self._world.writable(given["channel"]).values()
        return _page([one for one in every if given["ts"] in (one.ts, one.thread)], given)

    def _file_info(self, given: Json) -> Json:
        if given["file"] not in self._world.files:
            raise Refusal("file_not_found")
        return {"file": self._world.files[given["file"]][0]}

    def _user(self, given: Json) -> Json:
        if given["user"] == "U99":
            raise Refusal("user_not_found")
        profile = {"display_name": "Ada"}
        return {"user": {"id": given["user"], "real_name": "Ada L.", "profile": profile}}

    def _group(self, given: Json) -> Json:
        if given["usergroup"] not in self._world.groups:
            raise Refusal("no_such_subteam")
        return {"users": self._world.groups[given["usergroup"]]}

    # Sockets

    def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask for another connection in place of each that there is."""
        told: Json = {"type": "disconnect", "reason": reason, "debug_info": {}}
        self._each_socket(lambda there: there.send(told))

    async def _opened(self, http: HttpRequest, there: WebSocket) -> None:
        if http.path != "/link":
            return
        self.opened += 1
        number = self.opened
        there.send({"type": "hello", "num_connections": len(self._sockets), "debug_info": {}})
        telling = asyncio.ensure_future(self._tell(number, there))
        try:
            while (said := await there.receive()) is not None:
                with self._lock:
                    self._acknowledged(said["envelope_id"])
        finally:
            telling.cancel()

    def _acknowledged(self, envelope: str) -> None:
        if self.faults.happens(self.faults.duplicated):
            # As if it had not arrived; an earlier one may have.
            if lost := self._world.unacknowledged.get(envelope):
                lost.sent_at = 0.0
            return
        self._world.acknowledge(envelope)

    async def _tell(self, number: int, there: WebSocket) -> None:
        while True:
            self._news.clear()
            # The last that was opened gets everything; Slack picks any.
            if there is self._sockets[-1]:
                with self._lock:
                    due = self._due(number)
                for envelope in due:
                    there.send(envelope.told())
                    envelope.attempts += 1
                    envelope.sent_at, envelope.socket = time.monotonic(), number
            await self._until_news(min(0.2, self._patience))

    def _due(self, number: int) -> Sequence[Envelope]:
        late = time.monotonic() - self._patience
        found = [
            one
            for one in self._world.unacknowledged.values()
            if one.socket != number or one.sent_at < late
        ]
        if self.faults.happens(self.faults.reordered):
            # Of two channels, never of one.
            found.sort(key=lambda one: _channel_of(one.content["payload"])[::-1])
        return found


_METHODS = {
    "auth.test": "_auth_test",
    "apps.connections.open": "_open",
    "chat.postMessage": "_post",
    "chat.update": "_update",
    "chat.postEphemeral": "_whisper",
    "conversations.history": "_history",
    "conversations.replies": "_replies",
    "files.info": "_file_info",
    "users.info": "_user",
    "usergroups.users.list": "_group",
}


def _given(http: HttpRequest) -> Json:
    if http.headers.get("content-type", "").startswith("application/json"):
        return json.loads(http.body or b"{}")
    return dict(parse_qsl(http.query, keep_blank_values=True)) | dict(
        parse_qsl(http.body.decode(), keep_blank_values=True)
    )


def _page(messages: Sequence[Message], given: Json) -> Json:
    begins, limit = int(given.get("cursor") or 0), int(given.get("limit") or 100)
    shown_ = messages[begins : begins + limit]
    more = begins + limit < len(messages)
    return {
        "messages": [
            {**one.told(), **({"metadata": one.metadata} if one.metadata else {})} for one in shown_
        ],
        "has_more": more,
        "response_metadata": {"next_cursor": str(begins + limit) if more else ""},
    }


def _channel_of(payload: Json) -> str:
    event: Json = payload.get("event") or payload
    found: Any = event.get("channel") or event.get("channel_id") or ""
    return str(found if isinstance(found, str) else found["id"])
