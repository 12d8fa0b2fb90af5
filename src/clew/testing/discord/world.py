"""What a fake Discord holds: channels and messages, and sessions with all that they were told."""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

LONGEST = 2000
GUILD = "900"
_EPOCH = 1_420_070_400_000
#: Seconds for which a nonce is remembered.
_REMEMBERS = 180.0


class Refusal(Exception):
    """An error of the API."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(slots=True)
class Message:
    """A message, as it is shown now."""

    id: str
    channel: str
    author: Json
    content: str
    more: Json = field(default_factory=dict[str, Any])
    components: list[Json] = field(default_factory=list[Json])
    reply_to: str | None = None
    #: Whom it told of itself by mentioning them.
    pings: list[str] = field(default_factory=list[str])
    #: Every text that it had, the first included.
    texts: list[str] = field(default_factory=list[str])
    sent_n: int = 0
    changed_n: int = 0

    @property
    def buttons(self) -> list[Json]:
        """The buttons that can be pressed."""
        every = (each for row in self.components for each in row["components"])
        return [each for each in every if not each.get("disabled")]

    @property
    def labels(self) -> list[str]:
        """What its buttons say, those included that cannot be pressed."""
        return [each["label"] for row in self.components for each in row["components"]]

    def told(self) -> Json:
        return {
            "id": self.id,
            "channel_id": self.channel,
            "author": self.author,
            "content": self.content,
            "timestamp": now(),
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
            **self.more,
        }


@dataclass(slots=True)
class Session:
    """What one client is told, from the first dispatch on."""

    id: str
    told: list[Json] = field(default_factory=list[Json])
    #: The last dispatch that the client said it has.
    acknowledged: int = 0

    def dispatch(self, kind: str, content: Json) -> Json:
        frame = {"op": 0, "s": len(self.told) + 1, "t": kind, "d": content}
        self.told.append(frame)
        return frame


class World:
    """The state; whoever uses it holds the server's lock."""

    def __init__(self) -> None:
        self.channels: dict[str, Json] = {}
        self.messages: dict[str, dict[str, Message]] = {}
        self.sessions: dict[str, Session] = {}
        self.closed: set[str] = set()
        self.files: dict[str, bytes] = {}
        self.throttled: dict[str, float] = {}
        self.throttled_all = 0.0
        self.commands: list[Json] = []
        #: What interactions were answered with.
        self.answered: dict[str, Json] = {}
        self._nonces: dict[tuple[str, str], tuple[str, float]] = {}
        self._counter = itertools.count(1)

    def next_id(self) -> str:
        """An id as Discord makes them: later ones are larger."""
        return str((int(time.time() * 1000) - _EPOCH << 22) + next(self._counter) % (1 << 22))

    def open(self, channel: str, **more: object) -> Json:
        """The channel, made where it is new: a direct chat unless told otherwise."""
        if channel not in self.channels:
            self.channels[channel] = {"id": channel, "type": 1, **more}
            self.messages[channel] = {}
        return self.channels[channel]

    def writable(self, channel: str) -> dict[str, Message]:
        if channel not in self.channels:
            raise Refusal(404, 10003, "Unknown Channel")
        if channel in self.closed:
            raise Refusal(403, 50007, "Cannot send messages to this user")
        return self.messages[channel]

    def message(self, channel: str, message: str) -> Message:
        found = self.writable(channel).get(message)
        if found is None:
            raise Refusal(404, 10008, "Unknown Message")
        return found

    def by_nonce(self, channel: str, nonce: str) -> Message | None:
        """The message that was made with a nonce a moment ago."""
        found, at = self._nonces.get((channel, nonce), ("", 0.0))
        return self.messages[channel].get(found) if time.monotonic() - at < _REMEMBERS else None

    def keep_nonce(self, message: Message, nonce: str) -> None:
        self._nonces[message.channel, nonce] = message.id, time.monotonic()

    def wait(self, channel: str) -> tuple[float, bool]:
        """Seconds for which a channel takes no calls, and whether nothing is taken at all."""
        here = self.throttled.get(channel, 0.0) - time.monotonic()
        everywhere = self.throttled_all - time.monotonic()
        return max(here, everywhere), everywhere > max(here, 0.0)


def now() -> str:
    return datetime.now(UTC).isoformat()


def pings(given: Json) -> list[str]:
    """Whom a message mentions, if it was not forbidden to."""
    allowed: Json | None = given.get("allowed_mentions")
    if allowed is not None and not allowed.get("parse"):
        return []
    return re.findall(r"@everyone|@here|<@[!&]?\d+>", given.get("content") or "")


def checked(given: Json) -> str:
    """The text of a call, if Discord would take it."""
    text: str = given.get("content") or ""
    if not text.strip() and not given.get("components"):
        raise Refusal(400, 50006, "Cannot send an empty message")
    if len(text) > LONGEST:
        raise Refusal(400, 50035, "Invalid Form Body")
    rows: list[Json] = given.get("components") or []
    for row in rows:
        buttons: list[Json] = row["components"]
        fit = all(len(one["label"]) <= 80 and len(one["custom_id"]) <= 100 for one in buttons)
        if len(buttons) > 5 or not fit:
            raise Refusal(400, 50035, "Invalid Form Body")
    if len(given.get("nonce") or "") > 25:
        raise Refusal(400, 50035, "Invalid Form Body")
    return text
