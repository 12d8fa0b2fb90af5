"""The fake server: the REST API, and sockets that tell of posts from their start on."""

from __future__ import annotations

import asyncio
import json
import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

from clew.testing.fake_platform import FakeResponse, Json
from clew.testing.mattermost.actions import MattermostActions
from clew.testing.mattermost.state import (
    BOT_ID,
    BOT_NAME,
    FakeMattermostError,
    MattermostPost,
    MattermostState,
    validate_post,
)
from clew.testing.multipart import SentBytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.testing.faults import FaultInjector
    from clew.testing.provider.http import HttpRequest
    from clew.testing.websocket import FakeWebSocket

_PREFIX = "/api/v4"
_MAX_SINCE = 1000


class FakeMattermost(MattermostActions):
    """
    Plays a Mattermost server for one bot, on loopback.

    ::

        with FakeMattermost() as mattermost:
            settings = {"token": mattermost.token, "base_url": mattermost.url, "user": "clew"}
            mattermost.post_message("Hello", user="u42")

    With ``early``, people's posts appear once the first client has connected: the agent does not
    answer what was written before it came.
    """

    def __init__(
        self,
        *,
        token: str = "fake-mattermost-token",
        faults: FaultInjector | None = None,
        log: Path | None = None,
        early: bool = False,
    ) -> None:
        super().__init__(faults=faults, log=log)
        self._state = MattermostState()
        self.token = token
        self._early: list[tuple[str, Json]] | None = [] if early else None
        #: Every event, and how many the newest client was told, which has read what it missed.
        self._events: list[Json] = []
        self._told, self._has_caught_up = 0, True
        #: The number of clients that came.
        self.opened = 0
        #: Posts whose text the clients were not told, to test the numbers of the socket.
        self.drops_events = False
        #: Bytes of the largest file (``MaxFileSize``).
        self.max_file_bytes = 100 * 1024 * 1024

    def post_message(self, text: str, **given: Any) -> MattermostPost:
        with self._lock:
            if self._early is not None:
                self._early.append((text, given))
                return MattermostPost("", "", "", text, 0, 0)
        return super().post_message(text, **given)

    @property
    def pending_count(self) -> int:
        """Return the number of events that the newest client was not told, or may not have read."""
        with self._lock:
            waiting = len(self._events) - self._told + len(self._early or ())
            return waiting + (not self._has_caught_up)

    def throttle_calls(self, channel: str, seconds: float) -> None:
        """Refuse the calls to a channel for some seconds."""
        with self._lock:
            self._state.throttled_until[channel] = time.monotonic() + seconds

    def _add_event(self, event: Json) -> None:
        self._events.append(event)
        self.notify_news()

    # The REST API

    def _is_exempt(self, http: HttpRequest) -> bool:
        return http.method == "GET" and not http.path.endswith("/posts")

    def _handle_call(self, http: HttpRequest, *, throttled: bool) -> FakeResponse:
        if http.headers.get("authorization") != f"Bearer {self.token}":
            name = "api.context.session_expired.app_error"
            return _refuse(FakeMattermostError(401, name, "Invalid or expired session"))
        given = _parse_body(http)
        channel = given.get("channel_id") or _find_channel(http.path)
        if channel and http.method != "GET":
            if throttled:
                wait = self.faults.draw_wait()
                self._state.throttled_until[channel] = time.monotonic() + wait
            left = self._state.throttled_until.get(channel, 0.0) - time.monotonic()
            if left > 0:
                after = {"X-RateLimit-Reset": str(self._throttle_seconds(channel, left))}
                return FakeResponse(b"limit exceeded", 429, after, media="text/plain")
        try:
            return self._dispatch(http, given)
        except FakeMattermostError as refusal:
            return _refuse(refusal)

    def _dispatch(self, http: HttpRequest, given: Json) -> FakeResponse:
        query = {name: values[0] for name, values in parse_qs(http.query).items()}
        for method, pattern, name in _ROUTES:
            found = re.fullmatch(_PREFIX + pattern, http.path)
            if method == http.method and found:
                parts = map(unquote, found.groups())
                answer: FakeResponse = getattr(self, name)(*parts, {**query, **given})
                return answer
        raise FakeMattermostError(404, "api.context.404.app_error", "Sorry, we could not find it")

    def _get_me(self, given: Json) -> FakeResponse:
        return FakeResponse({"id": BOT_ID, "username": BOT_NAME, "is_bot": True})

    def _get_user(self, user: str, given: Json) -> FakeResponse:
        return FakeResponse({"id": user, "username": user})

    def _list_channels(self, user: str, given: Json) -> FakeResponse:
        self._has_caught_up = True
        return FakeResponse(list(self._state.channels.values()))

    def _get_channel(self, channel: str, given: Json) -> FakeResponse:
        return FakeResponse(self._state.get_channel(channel))

    def _list_posts(self, channel: str, given: Json) -> FakeResponse:
        posts = self._state.list_channel(channel)
        if "since" in given:
            since = int(given["since"])
            chosen = [one for one in posts if one.update_at >= since][:_MAX_SINCE]
        else:
            size = int(given.get("per_page", 60))
            begins = int(given.get("page", 0)) * size
            chosen = [one for one in posts if not one.delete_at][begins : begins + size]
        return FakeResponse(_build_list(chosen))

    def _create_post(self, given: Json) -> FakeResponse:
        channel = given["channel_id"]
        self._state.get_channel(channel)
        if channel in self._state.blocked:
            name = "api.context.permissions.app_error"
            raise FakeMattermostError(403, name, "You do not have the appropriate permissions.")
        if (known := self._state.find_pending(given.get("pending_post_id") or "")) is not None:
            return FakeResponse(known.to_json(), 201)
        text = validate_post(given)
        files = [self._describe_file(one) for one in given.get("file_ids") or ()]
        file = SentBytes(*self._state.files[files[0]["id"]]) if files else None
        post = self._state.add_post(
            channel,
            BOT_ID,
            text,
            root=given.get("root_id") or "",
            props=given.get("props") or {},
            files=files,
            document=None if file is None else file.content.decode(errors="replace"),
            file=file,
        )
        self._state.remember_pending(given.get("pending_post_id") or "", post)
        # The bot receives its own posts, too.
        self._publish("posted", post)
        self._write_log(n=self._next_number(), channel=channel, id=post.id, text=text)
        return FakeResponse(post.to_json(), 201)

    def _describe_file(self, file: str) -> Json:
        if file not in self._state.files:
            raise FakeMattermostError(400, "api.post.create_post.file_ids", "No such file")
        name, content = self._state.files[file]
        return {"id": file, "name": name, "size": len(content), "mime_type": "text/plain"}

    def _patch_post(self, post: str, given: Json) -> FakeResponse:
        found = self._state.get_own_post(post)
        found.message = validate_post({**given, "file_ids": found.files})
        found.texts.append(found.message)
        found.update_at = found.edit_at = self._state.next_time()
        self._publish("post_edited", found)
        self._write_log(n=self._next_number(), channel=found.channel, id=post, edit=found.message)
        return FakeResponse(found.to_json())

    def _upload_file(self, given: Json) -> FakeResponse:
        if len(given["content"]) > self.max_file_bytes:
            name = "api.file.upload_file.too_large_detailed.app_error"
            raise FakeMattermostError(413, name, "Unable to upload file. File is too large.")
        file = self._state.next_id()
        self._state.files[file] = (given["filename"], given["content"])
        return FakeResponse({"file_infos": [self._describe_file(file)]}, 201)

    def _get_file(self, file: str, given: Json) -> FakeResponse:
        if file not in self._state.files:
            raise FakeMattermostError(404, "app.file_info.get.app_error", "No such file")
        return FakeResponse(self._state.files[file][1], media="application/octet-stream")

    def _show_typing(self, given: Json) -> FakeResponse:
        return FakeResponse({"status": "OK"})

    # The socket

    async def _serve_socket(self, http: HttpRequest, there: FakeWebSocket) -> None:
        telling: asyncio.Task[None] | None = None
        try:
            while (said := await there.receive()) is not None:
                if said.get("action") != "authentication_challenge" or telling is not None:
                    continue
                if said["data"]["token"] != self.token:
                    there.send({"status": "FAIL", "seq_reply": said["seq"]})
                    return
                there.send({"status": "OK", "seq_reply": said["seq"]})
                telling = asyncio.ensure_future(self._push_events(there))
        finally:
            if telling is not None:
                telling.cancel()

    async def _push_events(self, there: FakeWebSocket) -> None:
        with self._lock:
            self.opened += 1
            told = self._told = len(self._events)
            self._has_caught_up = False
        there.send({"event": "hello", "data": {"server_version": "10.5.0"}, "seq": 0})
        self._release_early()
        seq = 0
        while True:
            self._news.clear()
            with self._lock:
                due, told = self._events[told:], len(self._events)
            for event in due:
                seq += 1
                if self.drops_events or self.faults.draw_chance(self.faults.duplicated):
                    continue  # as a server does whose client is slow
                there.send({**event, "seq": seq})
            with self._lock:
                self._told = max(self._told, told)
            await self._wait_for_news(0.2)

    def _release_early(self) -> None:
        with self._lock:
            early, self._early = self._early, None
        for text, given in early or ():
            super().post_message(text, **given)


_ROUTES = [
    ("GET", r"/users/me", "_get_me"),
    ("POST", r"/users/me/typing", "_show_typing"),
    ("GET", r"/users/(\w+)", "_get_user"),
    ("GET", r"/users/(\w+)/channels", "_list_channels"),
    ("GET", r"/channels/(\w+)", "_get_channel"),
    ("GET", r"/channels/(\w+)/posts", "_list_posts"),
    ("POST", r"/posts", "_create_post"),
    ("PUT", r"/posts/(\w+)/patch", "_patch_post"),
    ("POST", r"/files", "_upload_file"),
    ("GET", r"/files/(\w+)", "_get_file"),
]


def _refuse(refusal: FakeMattermostError) -> FakeResponse:
    told = {"id": refusal.name, "message": refusal.message, "status_code": refusal.status}
    return FakeResponse(told, refusal.status)


def _find_channel(path: str) -> str:
    found = re.match(_PREFIX + r"/channels/(\w+)", path)
    return found[1] if found else ""


def _parse_body(http: HttpRequest) -> Json:
    if http.path == f"{_PREFIX}/files":
        return {"content": http.body}
    return json.loads(http.body) if http.body[:1] == b"{" else {}


def _build_list(posts: Sequence[MattermostPost]) -> Json:
    return {
        "order": [one.id for one in posts],
        "posts": {one.id: one.to_json() for one in posts},
        "next_post_id": "",
        "prev_post_id": "",
    }
