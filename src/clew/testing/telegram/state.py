"""State of a fake Telegram: chats, messages, pending updates, and calls."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.testing.multipart import SentBytes

Json = dict[str, Any]


@dataclass(slots=True)
class TelegramMessage:
    """A message of the bot, as it is shown now."""

    id: int
    chat: int
    text: str
    entities: list[Json]
    thread: int | None = None
    reply_to: int | None = None
    buttons: list[list[Json]] = field(default_factory=list[list[Json]])
    #: Every text that it had, including the first.
    texts: list[str] = field(default_factory=list[str])
    #: The text of its file.
    document: str | None = None
    file: SentBytes | None = None
    #: The numbers of the calls that created it and last changed it.
    sent_n: int = 0
    changed_n: int = 0


class ApiCall(Record, kw_only=False):
    """A call of the bot; calls are in order of their effect."""

    n: int
    at: float
    method: str
    parameters: Json
    #: The status of the response; 0 if the connection was cut.
    status: int

    @property
    def chat(self) -> int | None:
        found = self.parameters.get("chat_id")
        return None if found is None else int(found)


class SentMessage(Record, kw_only=False):
    """A message of the bot that people see, for evaluation."""

    chat: int
    message: int
    text: str


class FakeTelegramError(Exception):
    """An error response of the API."""

    def __init__(self, code: int, description: str, **parameters: object) -> None:
        super().__init__(description)
        self.code, self.description, self.parameters = code, description, parameters


class TelegramState:
    """The state; its users hold the server's lock."""

    def __init__(self) -> None:
        self.chats: dict[int, Json] = {}
        self.messages: dict[int, dict[int, TelegramMessage]] = {}
        self.blocked: set[int] = set()
        #: Bytes of the largest file that a bot may send.
        self.max_file_bytes = 50_000_000
        self.files: dict[str, tuple[str, bytes]] = {}
        self.updates: list[Json] = []
        self.calls: list[ApiCall] = []
        #: Throttled chats, each with the end by the monotonic clock.
        self.throttled_until: dict[int, float] = {}
        self.commands: list[Json] = []
        self.callback_answers: dict[str, str] = {}
        self._update_ids = itertools.count(1000)
        self._message_ids = itertools.count(1)
        self._counter = itertools.count(1)

    def next_id(self) -> int:
        return next(self._message_ids)

    def next_number(self) -> int:
        return next(self._counter)

    def open_chat(self, chat: int, kind: str, title: str) -> Json:
        """Return a chat, created if it is new."""
        if chat not in self.chats:
            named = {"first_name": title} if kind == "private" else {"title": title}
            self.chats[chat] = {"id": chat, "type": kind, **named}
            self.messages[chat] = {}
        return self.chats[chat]

    def add_update(self, kind: str, content: Json) -> int:
        update_id = next(self._update_ids)
        self.updates.append({"update_id": update_id, kind: content})
        return update_id

    def confirm_updates(self, offset: int | None) -> list[Json]:
        """Confirm and drop the updates before ``offset``; return the first of the others."""
        if offset is not None:
            self.updates = [one for one in self.updates if one["update_id"] >= offset]
        return self.updates[:100]

    def iter_messages(self) -> Iterable[TelegramMessage]:
        """Yield the bot's messages, chat by chat in order."""
        for messages in self.messages.values():
            yield from messages.values()

    def throttle_chat(self, chat: int, seconds: float) -> None:
        self.throttled_until[chat] = time.monotonic() + seconds

    def check_throttle(self, chat: int) -> None:
        left = self.throttled_until.get(chat, 0.0) - time.monotonic()
        if left > 0:
            seconds = max(1, round(left))
            raise FakeTelegramError(
                429, f"Too Many Requests: retry after {seconds}", retry_after=seconds
            )
