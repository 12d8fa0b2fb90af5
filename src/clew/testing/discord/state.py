"""State of a fake Discord: channels, messages, and sessions with their dispatches."""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.testing.multipart import SentBytes

Json = dict[str, Any]

MAX_LENGTH = 2000
GUILD = "900"
_EPOCH = 1_420_070_400_000
#: Seconds for which a nonce is remembered.
_NONCE_LIFETIME = 180.0


class FakeDiscordError(Exception):
    """An error response of the API."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(slots=True)
class DiscordMessage:
    """A message, as it is shown now."""

    id: str
    channel: str
    author: Json
    content: str
    extra_fields: Json = field(default_factory=dict[str, Any])
    components: list[Json] = field(default_factory=list[Json])
    reply_to: str | None = None
    #: The mentions that notified a user.
    pings: list[str] = field(default_factory=list[str])
    #: Every text that it had, including the first.
    texts: list[str] = field(default_factory=list[str])
    #: The text of its file.
    document: str | None = None
    file: SentBytes | None = None
    sent_n: int = 0
    changed_n: int = 0

    @property
    def buttons(self) -> list[Json]:
        """Return the buttons that are enabled."""
        every = (each for row in self.components for each in row["components"])
        return [each for each in every if not each.get("disabled")]

    @property
    def labels(self) -> list[str]:
        """Return the labels of all buttons, including disabled ones."""
        return [each["label"] for row in self.components for each in row["components"]]

    def to_json(self) -> Json:
        return {
            "id": self.id,
            "channel_id": self.channel,
            "author": self.author,
            "content": self.content,
            "timestamp": current_time(),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            "components": self.components,
            **self.extra_fields,
        }


@dataclass(slots=True)
class FakeGatewaySession:
    """A client's session, with every dispatch from the first on."""

    id: str
    dispatches: list[Json] = field(default_factory=list[Json])
    #: The last dispatch that the client acknowledged.
    acknowledged: int = 0

    def add_dispatch(self, kind: str, content: Json) -> Json:
        frame = {"op": 0, "s": len(self.dispatches) + 1, "t": kind, "d": content}
        self.dispatches.append(frame)
        return frame


class DiscordState:
    """The state; its users hold the server's lock."""

    def __init__(self) -> None:
        self.channels: dict[str, Json] = {}
        self.messages: dict[str, dict[str, DiscordMessage]] = {}
        self.sessions: dict[str, FakeGatewaySession] = {}
        self.blocked_channels: set[str] = set()
        self.files: dict[str, bytes] = {}
        self.throttled_until: dict[str, float] = {}
        self.all_throttled_until = 0.0
        self.commands: list[Json] = []
        #: Responses to interactions.
        self.interaction_responses: dict[str, Json] = {}
        self._nonces: dict[tuple[str, str], tuple[str, float]] = {}
        self._counter = itertools.count(1)

    def next_id(self) -> str:
        """Return a new id; as on Discord, later ids are larger."""
        return str((int(time.time() * 1000) - _EPOCH << 22) + next(self._counter) % (1 << 22))

    def open_channel(self, channel: str, **more: object) -> Json:
        """Return a channel, created if it is new: a direct chat by default."""
        if channel not in self.channels:
            self.channels[channel] = {"id": channel, "type": 1, **more}
            self.messages[channel] = {}
        return self.channels[channel]

    def writable_messages(self, channel: str) -> dict[str, DiscordMessage]:
        if channel not in self.channels:
            raise FakeDiscordError(404, 10003, "Unknown Channel")
        if channel in self.blocked_channels:
            raise FakeDiscordError(403, 50007, "Cannot send messages to this user")
        return self.messages[channel]

    def get_message(self, channel: str, message: str) -> DiscordMessage:
        found = self.writable_messages(channel).get(message)
        if found is None:
            raise FakeDiscordError(404, 10008, "Unknown Message")
        return found

    def find_by_nonce(self, channel: str, nonce: str) -> DiscordMessage | None:
        """Return the message that was recently created with a nonce."""
        found, at = self._nonces.get((channel, nonce), ("", 0.0))
        return (
            self.messages[channel].get(found) if time.monotonic() - at < _NONCE_LIFETIME else None
        )

    def store_nonce(self, message: DiscordMessage, nonce: str) -> None:
        self._nonces[message.channel, nonce] = message.id, time.monotonic()

    def throttle_remaining(self, channel: str) -> tuple[float, bool]:
        """Return the seconds of throttling, and whether it affects all channels."""
        here = self.throttled_until.get(channel, 0.0) - time.monotonic()
        everywhere = self.all_throttled_until - time.monotonic()
        return max(here, everywhere), everywhere > max(here, 0.0)


def current_time() -> str:
    return datetime.now(UTC).isoformat()


def find_pings(given: Json) -> list[str]:
    """Return the mentions of a message that notify a user."""
    allowed: Json | None = given.get("allowed_mentions")
    if allowed is not None and not allowed.get("parse"):
        return []
    return re.findall(r"@everyone|@here|<@[!&]?\d+>", given.get("content") or "")


def validate_message(given: Json) -> str:
    """
    Return the text of a call.

    :raises FakeDiscordError: if Discord would reject it
    """
    text: str = given.get("content") or ""
    if not text.strip() and not given.get("components"):
        raise FakeDiscordError(400, 50006, "Cannot send an empty message")
    if len(text) > MAX_LENGTH:
        raise FakeDiscordError(400, 50035, "Invalid Form Body")
    rows: list[Json] = given.get("components") or []
    for row in rows:
        buttons: list[Json] = row["components"]
        fit = all(len(one["label"]) <= 80 and len(one["custom_id"]) <= 100 for one in buttons)
        if len(buttons) > 5 or not fit:
            raise FakeDiscordError(400, 50035, "Invalid Form Body")
    if len(given.get("nonce") or "") > 25:
        raise FakeDiscordError(400, 50035, "Invalid Form Body")
    return text
