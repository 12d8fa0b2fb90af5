"""What people do on a fake Mattermost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.testing.fake_platform import FakePlatform, Json
from clew.testing.mattermost.state import BOT_ID, MattermostPost, MattermostState

if TYPE_CHECKING:
    from collections.abc import Sequence


class MattermostActions(FakePlatform):
    """The people of a server; callable from any thread."""

    _state: MattermostState

    def post_message(
        self,
        text: str,
        *,
        user: str = "u42",
        channel: str | None = None,
        kind: str = "D",
        root: str = "",
        **extra: Any,
    ) -> MattermostPost:
        """Write a post; by default in the direct channel of the person with the agent."""
        with self._lock:
            place = channel or direct_channel(user)
            self._state.open_channel(place, kind)
            post = self._state.add_post(place, user, text, root=root, extra_fields=extra)
            self._publish("posted", post)
            return post

    def open_dm(self, user: str) -> str:
        """Open the direct channel of a person with the agent, and return its id."""
        with self._lock:
            return str(self._state.open_channel(direct_channel(user))["id"])

    def edit_message(self, post: str, text: str) -> None:
        with self._lock:
            found = self._state.posts[post]
            found.message = text
            found.update_at = found.edit_at = self._state.next_time()
            self._publish("post_edited", found)

    def delete_message(self, post: str) -> None:
        with self._lock:
            found = self._state.posts[post]
            found.update_at = found.delete_at = self._state.next_time()
            self._publish("post_deleted", found)

    def attach_file(self, name: str, content: bytes, media_type: str) -> Json:
        """Store a file of a person, and return its description."""
        with self._lock:
            file = self._state.next_id()
            self._state.files[file] = (name, content)
            return {"id": file, "name": name, "size": len(content), "mime_type": media_type}

    def block_bot(self, user: str) -> None:
        """Let the server refuse the agent's posts to a person."""
        with self._lock:
            self._state.blocked.add(direct_channel(user))

    @property
    def sent(self) -> Sequence[MattermostPost]:
        """Return the posts of the agent that are still there, in order."""
        with self._lock:
            posts = self._state.posts.values()
            return [one for one in posts if one.user == BOT_ID and not one.delete_at]

    def _publish(self, event: str, post: MattermostPost) -> None:
        """Tell every client of a post; with the lock held."""
        told: Json = {"post": json.dumps(post.to_json())}
        if event == "posted":
            kind = self._state.channels[post.channel]["type"]
            told |= {"channel_type": kind, "sender_name": f"@{post.user}", "team_id": ""}
        self._add_event({"event": event, "data": told, "broadcast": {"channel_id": post.channel}})

    def _add_event(self, event: Json) -> None:
        raise NotImplementedError


def direct_channel(user: str) -> str:
    """Return the id of the direct channel of a person with the agent."""
    return f"d{user}"
