"""User actions on a fake Telegram, and access to the results."""

from __future__ import annotations

import abc
import itertools
import re
import threading
import time
from typing import Any

from clew.testing.fake_server import FakeServer
from clew.testing.faults import CallFault, FaultInjector
from clew.testing.telegram.state import ApiCall, Json, TelegramMessage, TelegramState


class TelegramActions(FakeServer, abc.ABC):
    """The part of the fake that tests use; the server delivers the updates."""

    def __init__(self, faults: FaultInjector) -> None:
        super().__init__()
        self.faults = faults
        self._state = TelegramState()
        self._lock = threading.RLock()
        self._query_ids = itertools.count(1)
        #: While set, texts with entities are rejected as unparsable.
        self.refuse_entities = False
        #: While set, the bot may not send documents.
        self.refuse_documents = False
        #: Faults of the next call of a method.
        self.method_faults: dict[str, CallFault] = {}

    def fail_method(self, method: str, *, lost: bool) -> None:
        """Cut the connection of the next call of a method, before its effect or after it."""
        with self._lock:
            self.method_faults[method] = CallFault.LOST if lost else CallFault.CUT

    def limit_files(self, most: int) -> None:
        """Take files of at most ``most`` bytes from the bot."""
        with self._lock:
            self._state.max_file_bytes = most

    # User actions

    def post_message(
        self,
        text: str | None = None,
        *,
        user: int = 42,
        chat: int | None = None,
        name: str = "Ada",
        thread: int | None = None,
        **more: Any,
    ) -> int:
        """Post a user's message to the bot alone or in a group (``chat``); return its id."""
        with self._lock:
            message = self._build_message(
                text, user=user, chat=chat, name=name, thread=thread, **more
            )
            self._state.add_update("message", message)
        self.notify_news()
        return message["message_id"]

    def edit_message(
        self, message: int, text: str, *, user: int = 42, chat: int | None = None
    ) -> None:
        """Edit a user's message."""
        with self._lock:
            edited = self._build_message(text, user=user, chat=chat, name="Ada", thread=None)
            edited |= {"message_id": message, "edit_date": int(time.time() * 1000)}
            self._state.add_update("edited_message", edited)
        self.notify_news()

    def press_button(
        self,
        label: str,
        *,
        user: int = 42,
        message: TelegramMessage | None = None,
        data: str | None = None,
    ) -> str:
        """Press a button under a message of the bot (the last one); return the query id."""
        with self._lock:
            under = message or [one for one in self._state.iter_messages() if one.buttons][-1]
            found = [one for row in under.buttons for one in row if one["text"] == label]
            query = f"q{next(self._query_ids)}"
            chat = self._state.chats[under.chat]
            topic = {"message_thread_id": under.thread, "is_topic_message": True}
            self._state.add_update(
                "callback_query",
                {
                    "id": query,
                    "from": _build_user(user, "Ada"),
                    "message": {
                        "message_id": under.id,
                        "date": int(time.time()),
                        "chat": chat,
                        **(topic if under.thread is not None else {}),
                    },
                    "data": found[0]["callback_data"] if data is None else data,
                },
            )
        self.notify_news()
        return query

    def open_dm(self, user: int, name: str = "Ada") -> None:
        """Open a user's chat with the bot."""
        with self._lock:
            self._state.open_chat(user, "private", name)

    def fail_next_call(self, *, lost: bool) -> None:
        """Cut the next call's connection: before its effect, or (``lost``) after it."""
        with self._lock:
            self.faults.queued.append(CallFault.LOST if lost else CallFault.CUT)

    def add_file(self, name: str, content: bytes) -> str:
        """Store a file for a message; return its id."""
        with self._lock:
            file_id = f"file{len(self._state.files) + 1}"
            self._state.files[file_id] = name, content
        return file_id

    def migrate_group(self, chat: int, to: int) -> None:
        """Turn a group into a supergroup, which has another id."""
        with self._lock:
            old = self._state.open_chat(chat, "group", "Group")
            self._state.open_chat(to, "supergroup", "Group")
            old["moved"] = to
            told = {
                "message_id": self._state.next_id(),
                "date": int(time.time()),
                "chat": {"id": chat, "type": "group", "title": "Group"},
                "from": _build_user(42, "Ada"),
                "migrate_to_chat_id": to,
            }
            self._state.add_update("message", told)
        self.notify_news()

    def block_bot(self, chat: int) -> None:
        """Let a user block the bot."""
        with self._lock:
            self._state.blocked.add(chat)

    def throttle_chat(self, chat: int, seconds: float) -> None:
        """Refuse calls to a chat for ``seconds``, as after too many calls."""
        with self._lock:
            self._state.throttle_chat(chat, seconds)

    def send_update(self, kind: str, content: Json) -> None:
        """Send any update, unchanged; its chat is created if it is new."""
        chat: Json = content.get("chat") or {}
        with self._lock:
            if chat:
                self._state.open_chat(chat["id"], chat["type"], chat.get("title", ""))
            self._state.add_update(kind, content)
        self.notify_news()

    def _build_message(
        self,
        text: str | None,
        *,
        user: int,
        chat: int | None,
        name: str,
        thread: int | None,
        **more: Any,
    ) -> Json:
        kind = "private" if chat is None else "supergroup"
        where = self._state.open_chat(user if chat is None else chat, kind, name)
        message: Json = {
            "message_id": self._state.next_id(),
            "date": int(time.time()),
            "chat": where,
            "from": _build_user(user, name),
            **more,
        }
        if text is not None:
            message["text"] = text
            message.setdefault("entities", _find_entities(text))
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        return message

    # Results

    @property
    def messages(self) -> list[TelegramMessage]:
        """Return the bot's messages, as shown now, in order of sending."""
        with self._lock:
            return sorted(self._state.iter_messages(), key=lambda message: message.id)

    def list_texts(self, chat: int) -> list[str]:
        """Return the bot's texts in a chat."""
        return [message.text for message in self.messages if message.chat == chat]

    @property
    def calls(self) -> list[ApiCall]:
        with self._lock:
            return list(self._state.calls)

    @property
    def pending_count(self) -> int:
        """Return the number of unconfirmed updates."""
        with self._lock:
            return len(self._state.updates)

    def get_response(self, query: str) -> str | None:
        """Return the answer that the person who pressed a button received, if any."""
        with self._lock:
            return self._state.callback_answers.get(query)

    @property
    def commands(self) -> list[Json]:
        with self._lock:
            return list(self._state.commands)


def _build_user(user: int, name: str) -> Json:
    return {"id": user, "is_bot": False, "first_name": name}


def _find_entities(text: str) -> list[Json]:
    """Return the entities that Telegram detects itself: commands and mentions."""
    found: list[Json] = []
    for match in re.finditer(r"(?<!\S)[@/]\w+(@\w+)?", text):
        place = len(text[: match.start()].encode("utf-16-le")) // 2
        kind = "bot_command" if match[0].startswith("/") else "mention"
        found.append({"type": kind, "offset": place, "length": len(match[0])})
    return found
