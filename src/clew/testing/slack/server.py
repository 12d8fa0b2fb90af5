"""The fake server: the Web API, and sockets that send envelopes until acknowledged."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from clew.testing.fake_platform import FakeResponse, Json
from clew.testing.multipart import SentBytes
from clew.testing.slack.actions import BOT_ID, BOT_USER, TEAM_ID, SlackActions
from clew.testing.slack.state import (
    FakeSlackError,
    SlackEnvelope,
    SlackMessage,
    validate_message,
    visible_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.testing.faults import FaultInjector
    from clew.testing.provider.http import HttpRequest
    from clew.testing.websocket import FakeWebSocket

#: Methods exempt from faults: a channel cannot start without them.
_EXEMPT_METHODS = ("auth.test", "apps.connections.open", "users.info")


class FakeSlack(SlackActions):
    """
    Plays Slack for one app, on loopback.

    ::

        with FakeSlack() as slack:
            tokens = {"token": slack.token, "app_token": slack.app_token}
            settings = {**tokens, "base_url": slack.api_url}
            slack.post_message("Hello", user="U42")
    """

    def __init__(
        self,
        *,
        token: str = "xoxb-fake-bot-token",
        app_token: str = "xapp-1-A0FAKE-1-fake-app-token",
        faults: FaultInjector | None = None,
        log: Path | None = None,
        patience: float = 3.0,
    ) -> None:
        super().__init__(faults=faults, log=log)
        self.token, self.app_token = token, app_token
        #: Seconds after which an unacknowledged envelope is sent again.
        self._resend_after = patience
        #: Scopes that the app was not given.
        self.missing_scopes: set[str] = set()
        #: Bytes of the largest file.
        self.max_file_bytes = 1_000_000_000
        #: Number of sockets opened.
        self.opened = 0

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/"

    # The web API

    def _is_exempt(self, http: HttpRequest) -> bool:
        return http.path.removeprefix("/api/") in _EXEMPT_METHODS

    def _handle_call(self, http: HttpRequest, *, throttled: bool) -> FakeResponse:
        method = http.path.removeprefix("/api/")
        if http.path.startswith("/upload/"):
            return self._store_upload(http.path.split("/")[2], http.body)
        token = http.headers.get("authorization", "").removeprefix("Bearer ")
        wanted = self.app_token if method == "apps.connections.open" else self.token
        if token != wanted:
            return FakeResponse({"ok": False, "error": "invalid_auth"})
        if http.path.startswith("/files-pri/"):
            found = self._state.files.get(http.path.split("/")[2])
            media = "application/octet-stream"
            return FakeResponse(found[1] if found else b"", 200 if found else 404, media=media)
        return self._call_method(method, _parse_arguments(http), throttled=throttled)

    def _call_method(self, method: str, given: Json, *, throttled: bool) -> FakeResponse:
        channel = given.get("channel", given.get("channel_id"))
        if channel is not None:
            if throttled:
                self._state.throttle_channel(channel, self.faults.draw_wait())
            if (left := self._state.throttle_remaining(channel)) > 0:
                self._log_call(method, given, "ratelimited")
                after = {"Retry-After": str(self._throttle_seconds(channel, left))}
                return FakeResponse({"ok": False, "error": "ratelimited"}, 429, after)
        try:
            if method not in _METHODS:
                raise FakeSlackError("unknown_method")
            answer = getattr(self, _METHODS[method])(given)
        except FakeSlackError as refusal:
            self._log_call(method, given, refusal.name)
            return FakeResponse({"ok": False, "error": refusal.name, **refusal.extra_fields})
        self._log_call(method, given, "")
        return FakeResponse({"ok": True, **answer})

    def _log_call(self, method: str, given: Json, error: str) -> None:
        n = self._next_number()
        if method.startswith("chat."):
            self._write_log(n=n, method=method, error=error, given=given)

    def _auth_test(self, given: Json) -> Json:
        return {"user_id": BOT_USER, "bot_id": BOT_ID, "team_id": TEAM_ID, "user": "clew"}

    def _open_connection(self, given: Json) -> Json:
        ticket = self._state.next_id()
        return {"url": f"{self.url.replace('http', 'ws')}/link?ticket={ticket}"}

    def _post_message(self, given: Json) -> Json:
        channel = self._state.writable_messages(given["channel"])
        text, blocks = self._validate_message(given)
        n = self._next_number()
        message = SlackMessage(
            ts=self._state.next_ts(),
            channel=given["channel"],
            text=text,
            user=BOT_USER,
            blocks=blocks,
            thread=given.get("thread_ts"),
            metadata=given.get("metadata"),
            by_app=True,
            texts=[visible_text(text, blocks)],
            sent_n=n,
            changed_n=n,
        )
        channel[message.ts] = message
        return {"ts": message.ts, "channel": message.channel, "message": message.to_json()}

    def _begin_upload(self, given: Json) -> Json:
        if "files:write" in self.missing_scopes:
            raise FakeSlackError("missing_scope", needed="files:write")
        if int(given["length"]) > self.max_file_bytes:
            raise FakeSlackError("file_upload_size_restricted")
        file = f"F{self._state.next_id():07d}"
        self._state.uploads[file] = (given["filename"], int(given["length"]), b"")
        return {"file_id": file, "upload_url": f"{self.url}/upload/{file}"}

    def _store_upload(self, file: str, content: bytes) -> FakeResponse:
        name, length, _ = self._state.uploads[file]
        if len(content) != length:
            return FakeResponse(b"", 400, media="text/plain")
        self._state.uploads[file] = (name, length, content)
        return FakeResponse(b"OK", media="text/plain")

    def _complete_upload(self, given: Json) -> Json:
        channel, (told,) = self._state.writable_messages(given["channel_id"]), given["files"]
        name, length, content = self._state.uploads.pop(told["id"], ("", 0, b""))
        if not name or len(content) != length:
            raise FakeSlackError("file_not_found")
        n, text = self._next_number(), given.get("initial_comment", "")
        file = {"id": told["id"], "name": name, "title": told["title"]}
        message = SlackMessage(
            ts=self._state.next_ts(),
            channel=given["channel_id"],
            text=text,
            user=BOT_USER,
            thread=given.get("thread_ts"),
            by_app=True,
            texts=[text],
            document=content.decode(errors="replace"),
            file=SentBytes(told["title"], content),
            files=[file],
            sent_n=n,
            changed_n=n,
        )
        channel[message.ts] = message
        return {"files": [file]}

    def _update_message(self, given: Json) -> Json:
        message = self._state.get_own_message(given["channel"], given["ts"])
        message.text, message.blocks = self._validate_message(given)
        message.texts.append(visible_text(message.text, message.blocks))
        message.changed_n = self._next_number()
        return {"ts": message.ts, "channel": message.channel, "text": message.text}

    def _validate_message(self, given: Json) -> tuple[str, list[Json]]:
        text, blocks = validate_message(given)
        if blocks and self.refuse_blocks:
            raise FakeSlackError("invalid_blocks")
        return text, blocks

    def _post_ephemeral(self, given: Json) -> Json:
        self._state.writable_messages(given["channel"])
        self._state.ephemeral_messages.append((given["channel"], given["user"], given["text"]))
        return {"message_ts": self._state.next_ts()}

    def _read_history(self, given: Json) -> Json:
        every = list(self._state.writable_messages(given["channel"]).values())
        return _build_page([one for one in reversed(every) if one.thread in (None, one.ts)], given)

    def _read_replies(self, given: Json) -> Json:
        every = self._state.writable_messages(given["channel"]).values()
        return _build_page([one for one in every if given["ts"] in (one.ts, one.thread)], given)

    def _file_info(self, given: Json) -> Json:
        if given["file"] not in self._state.files:
            raise FakeSlackError("file_not_found")
        return {"file": self._state.files[given["file"]][0]}

    def _user_info(self, given: Json) -> Json:
        if given["user"] == "U99":
            raise FakeSlackError("user_not_found")
        profile = {"display_name": "Ada"}
        return {"user": {"id": given["user"], "real_name": "Ada L.", "profile": profile}}

    def _list_group_users(self, given: Json) -> Json:
        if given["usergroup"] not in self._state.groups:
            raise FakeSlackError("no_such_subteam")
        return {"users": self._state.groups[given["usergroup"]]}

    # Sockets

    def request_reconnect(self, reason: str = "refresh_requested") -> None:
        """Ask every client to reconnect."""
        told: Json = {"type": "disconnect", "reason": reason, "debug_info": {}}
        self._for_each_socket(lambda there: there.send(told))

    async def _serve_socket(self, http: HttpRequest, there: FakeWebSocket) -> None:
        if http.path != "/link":
            return
        self.opened += 1
        number = self.opened
        there.send({"type": "hello", "num_connections": len(self._sockets), "debug_info": {}})
        telling = asyncio.ensure_future(self._push_events(number, there))
        try:
            while (said := await there.receive()) is not None:
                with self._lock:
                    self._handle_acknowledgement(said["envelope_id"])
        finally:
            telling.cancel()

    def _handle_acknowledgement(self, envelope: str) -> None:
        if self.faults.draw_chance(self.faults.duplicated):
            # As if it were lost; an earlier one may have arrived.
            if lost := self._state.unacknowledged.get(envelope):
                lost.sent_at = 0.0
            return
        self._state.acknowledge(envelope)

    async def _push_events(self, number: int, there: FakeWebSocket) -> None:
        while True:
            self._news.clear()
            # The socket opened last gets everything; Slack picks any.
            if there is self._sockets[-1]:
                with self._lock:
                    due = self._due_envelopes(number)
                for envelope in due:
                    there.send(envelope.to_json())
                    envelope.attempts += 1
                    envelope.sent_at, envelope.socket = time.monotonic(), number
            await self._wait_for_news(min(0.2, self._resend_after))

    def _due_envelopes(self, number: int) -> Sequence[SlackEnvelope]:
        late = time.monotonic() - self._resend_after
        found = [
            one
            for one in self._state.unacknowledged.values()
            if one.socket != number or one.sent_at < late
        ]
        if self.faults.draw_chance(self.faults.reordered):
            # Across channels only, never within one.
            found.sort(key=lambda one: _channel_of(one.content["payload"])[::-1])
        return found


_METHODS = {
    "auth.test": "_auth_test",
    "apps.connections.open": "_open_connection",
    "chat.postMessage": "_post_message",
    "chat.update": "_update_message",
    "chat.postEphemeral": "_post_ephemeral",
    "conversations.history": "_read_history",
    "conversations.replies": "_read_replies",
    "files.info": "_file_info",
    "files.getUploadURLExternal": "_begin_upload",
    "files.completeUploadExternal": "_complete_upload",
    "users.info": "_user_info",
    "usergroups.users.list": "_list_group_users",
}


def _parse_arguments(http: HttpRequest) -> Json:
    if http.headers.get("content-type", "").startswith("application/json"):
        return json.loads(http.body or b"{}")
    return dict(parse_qsl(http.query, keep_blank_values=True)) | dict(
        parse_qsl(http.body.decode(), keep_blank_values=True)
    )


def _build_page(messages: Sequence[SlackMessage], given: Json) -> Json:
    begins, limit = int(given.get("cursor") or 0), int(given.get("limit") or 100)
    shown_ = messages[begins : begins + limit]
    more = begins + limit < len(messages)
    return {
        "messages": [
            {**one.to_json(), **({"metadata": one.metadata} if one.metadata else {})}
            for one in shown_
        ],
        "has_more": more,
        "response_metadata": {"next_cursor": str(begins + limit) if more else ""},
    }


def _channel_of(payload: Json) -> str:
    event: Json = payload.get("event") or payload
    found: Any = event.get("channel") or event.get("channel_id") or ""
    return str(found if isinstance(found, str) else found["id"])
