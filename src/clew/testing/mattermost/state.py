"""State of a fake Mattermost: channels and posts."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.testing.multipart import SentBytes

Json = dict[str, Any]

MAX_LENGTH = 16_383
BOT_ID, BOT_NAME = "bot00000000000000000000000", "clew"
#: Seconds for which a ``pending_post_id`` is remembered.
_PENDING_LIFETIME = 30.0


class FakeMattermostError(Exception):
    """An error response of the API."""

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(message)
        self.status, self.name, self.message = status, name, message


@dataclass(slots=True)
class MattermostPost:
    """A post, as it is now."""

    id: str
    channel: str
    user: str
    message: str
    create_at: int
    update_at: int
    root: str = ""
    edit_at: int = 0
    delete_at: int = 0
    props: Json = field(default_factory=dict[str, Any])
    files: list[Json] = field(default_factory=list[Json])
    extra_fields: Json = field(default_factory=dict[str, Any])
    #: Every text that it had, including the first.
    texts: list[str] = field(default_factory=list[str])
    #: The text of its file.
    document: str | None = None
    file: SentBytes | None = None

    @property
    def pings(self) -> list[str]:
        """Return the mentions that notify somebody."""
        return [found for text in self.texts for found in re.findall(r"(?<![\w\\])@\w+", text)]

    def to_json(self) -> Json:
        return {
            "id": self.id,
            "create_at": self.create_at,
            "update_at": self.update_at,
            "edit_at": self.edit_at,
            "delete_at": self.delete_at,
            "is_pinned": False,
            "user_id": self.user,
            "channel_id": self.channel,
            "root_id": self.root,
            "original_id": "",
            "message": self.message,
            "type": "",
            "props": self.props,
            "hashtags": "",
            "file_ids": [one["id"] for one in self.files],
            "pending_post_id": "",
            "metadata": {"files": self.files} if self.files else {},
            **self.extra_fields,
        }


class MattermostState:
    """The state; its users hold the server's lock."""

    def __init__(self) -> None:
        #: Type and name of each channel.
        self.channels: dict[str, Json] = {}
        self.posts: dict[str, MattermostPost] = {}
        self.files: dict[str, tuple[str, bytes]] = {}
        self.blocked: set[str] = set()
        self.throttled_until: dict[str, float] = {}
        self._pending: dict[str, tuple[str, float]] = {}
        self._last = 0
        self._counter = 0

    def next_id(self) -> str:
        """Return a new id: as there, ids do not grow."""
        self._counter += 1
        return hashlib.sha256(f"{id(self)}{self._counter}".encode()).hexdigest()[:26]

    def next_time(self) -> int:
        """Return the time in milliseconds, never the same twice."""
        self._last = max(self._last + 1, time.time_ns() // 1_000_000)
        return self._last

    def open_channel(self, channel: str, kind: str = "D") -> Json:
        """Return a channel, created if it is new: a direct one by default."""
        fresh = {"id": channel, "type": kind, "name": channel, "last_post_at": 0, "team_id": ""}
        return self.channels.setdefault(channel, fresh)

    def get_channel(self, channel: str) -> Json:
        if channel not in self.channels:
            raise FakeMattermostError(404, "app.channel.get.existing.app_error", "No such channel")
        return self.channels[channel]

    def get_own_post(self, post: str) -> MattermostPost:
        found = self.posts.get(post)
        if found is None or found.delete_at:
            raise FakeMattermostError(404, "app.post.get.app_error", "Unable to get the post.")
        if found.user != BOT_ID:
            raise FakeMattermostError(403, "api.context.permissions.app_error", "No permission")
        return found

    def find_pending(self, pending: str) -> MattermostPost | None:
        """Return the post that was recently created with a ``pending_post_id``."""
        found, at = self._pending.get(pending, ("", 0.0))
        return self.posts.get(found) if time.monotonic() - at < _PENDING_LIFETIME else None

    def remember_pending(self, pending: str, post: MattermostPost) -> None:
        if pending:
            self._pending[pending] = post.id, time.monotonic()

    def add_post(self, channel: str, user: str, message: str, **more: Any) -> MattermostPost:
        now = self.next_time()
        post = MattermostPost(
            self.next_id(), channel, user, message, now, now, texts=[message], **more
        )
        self.posts[post.id] = post
        self.channels[channel]["last_post_at"] = now
        return post

    def list_channel(self, channel: str) -> list[MattermostPost]:
        """Return the posts of a channel, the newest first."""
        self.get_channel(channel)
        found = [one for one in self.posts.values() if one.channel == channel]
        return sorted(found, key=lambda one: -one.create_at)


def validate_post(given: Json) -> str:
    """
    Return the text of a post.

    :raises FakeMattermostError: if the server would refuse it
    """
    text: str = given.get("message") or ""
    if not text.strip() and not given.get("file_ids"):
        raise FakeMattermostError(400, "api.post.create_post.empty", "Empty message")
    if len(text) > MAX_LENGTH:
        raise FakeMattermostError(400, "model.post.is_valid.msg.app_error", "Message too long")
    return text
