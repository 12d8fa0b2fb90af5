"""What a fake Slack holds: channels and messages, envelopes that were not acknowledged."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import Any

from clew.gateway.channels.slack.messages import unescape_mrkdwn

Json = dict[str, Any]

LONGEST = 4000
_ELEMENTS = {"rich_text_section", "rich_text_quote", "rich_text_preformatted"}


class Refusal(Exception):
    """An error of the API, by its name."""

    def __init__(self, name: str, **more: object) -> None:
        super().__init__(name)
        self.name, self.more = name, more


@dataclass(slots=True)
class Message:
    """A message, as it is shown now."""

    ts: str
    channel: str
    text: str
    user: str
    blocks: list[Json] = field(default_factory=list[Json])
    thread: str | None = None
    metadata: Json | None = None
    by_app: bool = False
    #: Every text that it had, the first included.
    texts: list[str] = field(default_factory=list[str])
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
    def remarks(self) -> list[str]:
        """What stands small under it."""
        return [
            each["text"]
            for block in self.blocks
            if block["type"] == "context"
            for each in block["elements"]
        ]

    @property
    def shown(self) -> str:
        """What people read."""
        return shown(self.text, self.blocks)

    def told(self) -> Json:
        """As events and lists have it."""
        found: Json = {"type": "message", "ts": self.ts, "text": self.text, "user": self.user}
        if self.by_app:
            found |= {"bot_id": "B0FAKE", "app_id": "A0FAKE"}
        if self.blocks:
            found["blocks"] = self.blocks
        if self.thread is not None:
            found["thread_ts"] = self.thread
        return found


@dataclass(slots=True)
class Envelope:
    """Something that is told until it is acknowledged."""

    id: str
    content: Json
    attempts: int = 0
    #: When it was last sent, and over which socket.
    sent_at: float = 0.0
    socket: int = 0

    def told(self) -> Json:
        more = {"retry_attempt": self.attempts, "retry_reason": "timeout" if self.attempts else ""}
        return {"envelope_id": self.id, **self.content, **more}


class World:
    """The state; whoever uses it holds the server's lock."""

    def __init__(self) -> None:
        self.channels: dict[str, dict[str, Message]] = {}
        self.refused: dict[str, str] = {}
        self.throttled: dict[str, float] = {}
        self.files: dict[str, tuple[Json, bytes]] = {}
        #: The people of each user group.
        self.groups: dict[str, list[str]] = {}
        self.unacknowledged: dict[str, Envelope] = {}
        self.acknowledged: dict[str, Envelope] = {}
        #: What only one person was told: (channel, user, text).
        self.whispered: list[tuple[str, str, str]] = []
        self._ids = itertools.count(1)

    def next_id(self) -> int:
        return next(self._ids)

    def next_ts(self) -> str:
        return f"{int(time.time())}.{next(self._ids):06d}"

    def open(self, channel: str) -> dict[str, Message]:
        return self.channels.setdefault(channel, {})

    def add_envelope(self, kind: str, payload: Json) -> Envelope:
        number = self.next_id()
        content = {
            "type": kind,
            "payload": payload,
            "accepts_response_payload": kind != "events_api",
        }
        envelope = Envelope(id=f"envelope-{number}", content=content)
        self.unacknowledged[envelope.id] = envelope
        return envelope

    def acknowledge(self, envelope: str) -> None:
        if found := self.unacknowledged.pop(envelope, None):
            self.acknowledged[envelope] = found

    # What the app calls

    def writable(self, channel: str) -> dict[str, Message]:
        if channel not in self.channels:
            raise Refusal("channel_not_found")
        if name := self.refused.get(channel):
            raise Refusal(name)
        return self.channels[channel]

    def message(self, channel: str, ts: str) -> Message:
        found = self.writable(channel).get(ts)
        if found is None:
            raise Refusal("message_not_found")
        if not found.by_app:
            raise Refusal("cant_update_message")
        return found

    def throttle(self, channel: str, seconds: float) -> None:
        self.throttled[channel] = time.monotonic() + seconds

    def wait(self, channel: str) -> float:
        return self.throttled.get(channel, 0.0) - time.monotonic()


def checked(given: Json) -> tuple[str, list[Json]]:
    """Text and blocks of a call, if Slack would take them."""
    text: str = given.get("text") or ""
    blocks: list[Json] = given.get("blocks") or []
    if not (text.strip() or blocks):
        raise Refusal("no_text")
    if len(text) > LONGEST:
        raise Refusal("msg_too_long")
    if len(blocks) > 50 or not all(_is_block(block) for block in blocks):
        raise Refusal("invalid_blocks")
    return text, blocks


def _is_block(block: Json) -> bool:
    if block["type"] == "actions":
        return all(
            len(each["text"]["text"]) <= 75 and 1 <= len(each["value"]) <= 2000
            for each in block["elements"]
        )
    if block["type"] == "context":
        return all(each["type"] == "plain_text" and each["text"] for each in block["elements"])
    return block["type"] == "rich_text" and all(_is_element(each) for each in block["elements"])


def _is_element(element: Json) -> bool:
    inner: list[Json] = element["elements"]
    if element["type"] not in _ELEMENTS or not inner:
        return False
    return all(each["type"] in ("text", "link") and each["text"] for each in inner)


def shown(text: str, blocks: list[Json]) -> str:
    """What people read of a message."""
    rich = [block for block in blocks if block["type"] == "rich_text"]
    if not rich:
        return unescape_mrkdwn(text)
    return "\n".join(
        "".join(each["text"] for each in element["elements"])
        for block in rich
        for element in block["elements"]
    )
