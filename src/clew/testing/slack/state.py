"""State of a fake Slack: channels, messages, and unacknowledged envelopes."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.gateway.channels.slack.messages import unescape_mrkdwn

if TYPE_CHECKING:
    from clew.testing.multipart import SentBytes

Json = dict[str, Any]

MAX_LENGTH = 4000
_ELEMENT_TYPES = {"rich_text_section", "rich_text_quote", "rich_text_preformatted"}


class FakeSlackError(Exception):
    """An error response of the API, by its name."""

    def __init__(self, name: str, **more: object) -> None:
        super().__init__(name)
        self.name, self.extra_fields = name, more


@dataclass(slots=True)
class SlackMessage:
    """A message, as it is shown now."""

    ts: str
    channel: str
    text: str
    user: str
    blocks: list[Json] = field(default_factory=list[Json])
    thread: str | None = None
    metadata: Json | None = None
    by_app: bool = False
    #: Every text that it had, including the first.
    texts: list[str] = field(default_factory=list[str])
    #: The text of its file, and the file as in lists.
    document: str | None = None
    file: SentBytes | None = None
    files: list[Json] = field(default_factory=list[Json])
    sent_n: int = 0
    changed_n: int = 0

    @property
    def buttons(self) -> list[Json]:
        return [
            each
            for block in self.blocks
            if block["type"] == "actions"
            for each in block["elements"]
        ]

    @property
    def context_texts(self) -> list[str]:
        """Return the texts of its context blocks."""
        return [
            each["text"]
            for block in self.blocks
            if block["type"] == "context"
            for each in block["elements"]
        ]

    @property
    def visible_text(self) -> str:
        """Return the text that people read."""
        return visible_text(self.text, self.blocks)

    def to_json(self) -> Json:
        """Return the message as in events and lists."""
        found: Json = {"type": "message", "ts": self.ts, "text": self.text, "user": self.user}
        if self.by_app:
            found |= {"bot_id": "B0FAKE", "app_id": "A0FAKE"}
        if self.blocks:
            found["blocks"] = self.blocks
        if self.thread is not None:
            found["thread_ts"] = self.thread
        if self.files:
            found["files"] = self.files
        return found


@dataclass(slots=True)
class SlackEnvelope:
    """An event that is sent until it is acknowledged."""

    id: str
    content: Json
    attempts: int = 0
    #: When it was last sent, and over which socket.
    sent_at: float = 0.0
    socket: int = 0

    def to_json(self) -> Json:
        more = {"retry_attempt": self.attempts, "retry_reason": "timeout" if self.attempts else ""}
        return {"envelope_id": self.id, **self.content, **more}


class SlackState:
    """The state; its users hold the server's lock."""

    def __init__(self) -> None:
        self.channels: dict[str, dict[str, SlackMessage]] = {}
        self.refused_channels: dict[str, str] = {}
        self.throttled_until: dict[str, float] = {}
        self.files: dict[str, tuple[Json, bytes]] = {}
        #: Files of the app, from the first of three calls on: name, length, content.
        self.uploads: dict[str, tuple[str, int, bytes]] = {}
        #: The members of each user group.
        self.groups: dict[str, list[str]] = {}
        self.unacknowledged: dict[str, SlackEnvelope] = {}
        self.acknowledged: dict[str, SlackEnvelope] = {}
        #: Ephemeral messages: (channel, user, text).
        self.ephemeral_messages: list[tuple[str, str, str]] = []
        self._ids = itertools.count(1)

    def next_id(self) -> int:
        return next(self._ids)

    def next_ts(self) -> str:
        return f"{int(time.time())}.{next(self._ids):06d}"

    def open_channel(self, channel: str) -> dict[str, SlackMessage]:
        return self.channels.setdefault(channel, {})

    def add_envelope(self, kind: str, payload: Json) -> SlackEnvelope:
        number = self.next_id()
        content = {
            "type": kind,
            "payload": payload,
            "accepts_response_payload": kind != "events_api",
        }
        envelope = SlackEnvelope(id=f"envelope-{number}", content=content)
        self.unacknowledged[envelope.id] = envelope
        return envelope

    def acknowledge(self, envelope: str) -> None:
        if found := self.unacknowledged.pop(envelope, None):
            self.acknowledged[envelope] = found

    # Access for API calls

    def writable_messages(self, channel: str) -> dict[str, SlackMessage]:
        if channel not in self.channels:
            raise FakeSlackError("channel_not_found")
        if name := self.refused_channels.get(channel):
            raise FakeSlackError(name)
        return self.channels[channel]

    def get_own_message(self, channel: str, ts: str) -> SlackMessage:
        found = self.writable_messages(channel).get(ts)
        if found is None:
            raise FakeSlackError("message_not_found")
        if not found.by_app:
            raise FakeSlackError("cant_update_message")
        return found

    def throttle_channel(self, channel: str, seconds: float) -> None:
        self.throttled_until[channel] = time.monotonic() + seconds

    def throttle_remaining(self, channel: str) -> float:
        return self.throttled_until.get(channel, 0.0) - time.monotonic()


def validate_message(given: Json) -> tuple[str, list[Json]]:
    """
    Return the text and blocks of a call.

    :raises FakeSlackError: if Slack would reject them
    """
    text: str = given.get("text") or ""
    blocks: list[Json] = given.get("blocks") or []
    if not (text.strip() or blocks):
        raise FakeSlackError("no_text")
    if len(text) > MAX_LENGTH:
        raise FakeSlackError("msg_too_long")
    if len(blocks) > 50 or not all(_is_valid_block(block) for block in blocks):
        raise FakeSlackError("invalid_blocks")
    return text, blocks


def _is_valid_block(block: Json) -> bool:
    if block["type"] == "actions":
        return all(
            len(each["text"]["text"]) <= 75 and 1 <= len(each["value"]) <= 2000
            for each in block["elements"]
        )
    if block["type"] == "context":
        return all(each["type"] == "plain_text" and each["text"] for each in block["elements"])
    return block["type"] == "rich_text" and all(
        _is_valid_element(each) for each in block["elements"]
    )


def _is_valid_element(element: Json) -> bool:
    inner: list[Json] = element["elements"]
    if element["type"] not in _ELEMENT_TYPES or not inner:
        return False
    return all(each["type"] in ("text", "link") and each["text"] for each in inner)


def visible_text(text: str, blocks: list[Json]) -> str:
    """Return the text of a message that people read."""
    rich = [block for block in blocks if block["type"] == "rich_text"]
    if not rich:
        return unescape_mrkdwn(text)
    return "\n".join(
        "".join(each["text"] for each in element["elements"])
        for block in rich
        for element in block["elements"]
    )
