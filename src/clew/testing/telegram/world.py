"""What a fake Telegram holds: chats and messages, updates that wait, calls that were made."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]


@dataclass(slots=True)
class Message:
    """A message of the bot, as it is shown now."""

    id: int
    chat: int
    text: str
    entities: list[Json]
    thread: int | None = None
    reply_to: int | None = None
    buttons: list[list[Json]] = field(default_factory=list[list[Json]])
    #: Every text that it had, the first included.
    texts: list[str] = field(default_factory=list[str])
    #: The call that made it, and the one that last changed it.
    sent_n: int = 0
    changed_n: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the bot, in the order in which they had their effect."""

    n: int
    at: float
    method: str
    parameters: Json
    #: The status that was answered; 0 where the connection was cut.
    status: int
    #: Whether it had its effect.
    effect: bool

    @property
    def chat(self) -> int | None:
        found = self.parameters.get("chat_id")
        return None if found is None else int(found)


@dataclass(frozen=True, slots=True)
class Sent:
    """Something that people see: what the bot wrote, for a judge."""

    chat: int
    message: int
    text: str


class Refusal(Exception):
    """An error of the API."""

    def __init__(self, code: int, description: str, **parameters: object) -> None:
        super().__init__(description)
        self.code, self.description, self.parameters = code, description, parameters


class World:
    """The state; whoever uses it holds the server's lock."""

    def __init__(self) -> None:
        self.chats: dict[int, Json] = {}
        self.messages: dict[int, dict[int, Message]] = {}
        self.blocked: set[int] = set()
        self.files: dict[str, tuple[str, bytes]] = {}
        self.updates: list[Json] = []
        self.calls: list[Call] = []
        #: Chats that take no calls until a moment of the monotonic clock.
        self.throttled: dict[int, float] = {}
        self.commands: list[Json] = []
        self.answered: dict[str, str] = {}
        self._update_ids = itertools.count(1000)
        self._message_ids = itertools.count(1)
        self._counter = itertools.count(1)

    def next_id(self) -> int:
        return next(self._message_ids)

    def count(self) -> int:
        return next(self._counter)

    def open_chat(self, chat: int, kind: str, title: str) -> Json:
        """The chat, made where it is new."""
        if chat not in self.chats:
            named = {"first_name": title} if kind == "private" else {"title": title}
            self.chats[chat] = {"id": chat, "type": kind, **named}
            self.messages[chat] = {}
        return self.chats[chat]

    def add_update(self, kind: str, content: Json) -> int:
        update_id = next(self._update_ids)
        self.updates.append({"update_id": update_id, kind: content})
        return update_id

    def unconfirmed(self, offset: int | None) -> list[Json]:
        """The updates from ``offset`` on; those before it are confirmed, and forgotten."""
        if offset is not None:
            self.updates = [one for one in self.updates if one["update_id"] >= offset]
        return self.updates[:100]

    def shown(self) -> Iterable[Message]:
        """What the bot wrote, chat by chat in order."""
        for messages in self.messages.values():
            yield from messages.values()

    def throttle(self, chat: int, seconds: float) -> None:
        self.throttled[chat] = time.monotonic() + seconds

    def check_throttle(self, chat: int) -> None:
        left = self.throttled.get(chat, 0.0) - time.monotonic()
        if left > 0:
            seconds = max(1, round(left))
            raise Refusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)
