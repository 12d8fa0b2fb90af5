"""What people do on a fake Telegram, and what is seen there."""

from __future__ import annotations

import abc
import itertools
import re
import threading
import time
from typing import Any

from clew.testing.serving import FakeServer
from clew.testing.telegram.faults import Fault, Faults
from clew.testing.telegram.world import Call, Json, Message, World


class People(FakeServer, abc.ABC):
    """The part of the fake that tests use; the server tells what they do."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self.faults = faults
        self._world = World()
        self._lock = threading.RLock()
        self._queries = itertools.count(1)
        #: While set, every text with entities is refused, as if they could not be parsed.
        self.refuse_entities = False

    # What people do

    def say(
        self,
        text: str | None = None,
        *,
        user: int = 42,
        chat: int | None = None,
        name: str = "Ada",
        thread: int | None = None,
        **more: Any,
    ) -> int:
        """Somebody writes, to the bot alone or in a group (``chat``); the message's id."""
        with self._lock:
            message = self._message(text, user=user, chat=chat, name=name, thread=thread, **more)
            self._world.add_update("message", message)
        self.look_again()
        return message["message_id"]

    def edit(self, message: int, text: str, *, user: int = 42, chat: int | None = None) -> None:
        """Somebody changes what they wrote."""
        with self._lock:
            edited = self._message(text, user=user, chat=chat, name="Ada", thread=None)
            edited |= {"message_id": message, "edit_date": int(time.time() * 1000)}
            self._world.add_update("edited_message", edited)
        self.look_again()

    def press(
        self, label: str, *, user: int = 42, message: Message | None = None, data: str | None = None
    ) -> str:
        """Somebody presses a button under a message of the bot (the last one); the query's id."""
        with self._lock:
            under = message or [one for one in self._world.shown() if one.buttons][-1]
            found = [one for row in under.buttons for one in row if one["text"] == label]
            query = f"q{next(self._queries)}"
            chat = self._world.chats[under.chat]
            topic = {"message_thread_id": under.thread, "is_topic_message": True}
            self._world.add_update(
                "callback_query",
                {
                    "id": query,
                    "from": _person(user, "Ada"),
                    "message": {
                        "message_id": under.id,
                        "date": int(time.time()),
                        "chat": chat,
                        **(topic if under.thread is not None else {}),
                    },
                    "data": found[0]["callback_data"] if data is None else data,
                },
            )
        self.look_again()
        return query

    def meet(self, user: int, name: str = "Ada") -> None:
        """Somebody opens a chat with the bot."""
        with self._lock:
            self._world.open_chat(user, "private", name)

    def fail_next(self, *, lost: bool) -> None:
        """The next call's connection is cut: before its effect, or (``lost``) after it."""
        with self._lock:
            self.faults.coming.append(Fault.LOST if lost else Fault.CUT)

    def put_file(self, name: str, content: bytes) -> str:
        """A file that a message may name; its id."""
        with self._lock:
            file_id = f"file{len(self._world.files) + 1}"
            self._world.files[file_id] = name, content
        return file_id

    def migrate(self, chat: int, to: int) -> None:
        """A group becomes a supergroup, and has another id."""
        with self._lock:
            old = self._world.open_chat(chat, "group", "Group")
            self._world.open_chat(to, "supergroup", "Group")
            old["moved"] = to
            told = {
                "message_id": self._world.next_id(),
                "date": int(time.time()),
                "chat": {"id": chat, "type": "group", "title": "Group"},
                "from": _person(42, "Ada"),
                "migrate_to_chat_id": to,
            }
            self._world.add_update("message", told)
        self.look_again()

    def block(self, chat: int) -> None:
        """The person lets the bot write no more."""
        with self._lock:
            self._world.blocked.add(chat)

    def delete(self, message: Message) -> None:
        """A message of the bot is deleted by somebody."""
        with self._lock:
            del self._world.messages[message.chat][message.id]

    def throttle(self, chat: int, seconds: float) -> None:
        """Refuse every call to a chat for so long, as after too many of them."""
        with self._lock:
            self._world.throttle(chat, seconds)

    def update(self, kind: str, content: Json) -> None:
        """Any update, as it is; its chat is there from then on."""
        chat: Json = content.get("chat") or {}
        with self._lock:
            if chat:
                self._world.open_chat(chat["id"], chat["type"], chat.get("title", ""))
            self._world.add_update(kind, content)
        self.look_again()

    def _message(
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
        where = self._world.open_chat(user if chat is None else chat, kind, name)
        message: Json = {
            "message_id": self._world.next_id(),
            "date": int(time.time()),
            "chat": where,
            "from": _person(user, name),
            **more,
        }
        if text is not None:
            message["text"] = text
            message.setdefault("entities", _entities(text))
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        return message

    # What is seen

    @property
    def messages(self) -> list[Message]:
        """What the bot wrote, as it is shown now, in the order of its sending."""
        with self._lock:
            return sorted(self._world.shown(), key=lambda message: message.id)

    def texts(self, chat: int) -> list[str]:
        """What the bot wrote in a chat."""
        return [message.text for message in self.messages if message.chat == chat]

    @property
    def calls(self) -> list[Call]:
        with self._lock:
            return list(self._world.calls)

    @property
    def waiting(self) -> int:
        """Updates that were not confirmed."""
        with self._lock:
            return len(self._world.updates)

    def answered(self, query: str) -> str | None:
        """What the person who pressed a button was told."""
        with self._lock:
            return self._world.answered.get(query)

    @property
    def commands(self) -> list[Json]:
        with self._lock:
            return list(self._world.commands)


def _person(user: int, name: str) -> Json:
    return {"id": user, "is_bot": False, "first_name": name}


def _entities(text: str) -> list[Json]:
    """The entities that Telegram finds by itself: commands and mentions."""
    found: list[Json] = []
    for match in re.finditer(r"(?<!\S)[@/]\w+(@\w+)?", text):
        place = len(text[: match.start()].encode("utf-16-le")) // 2
        kind = "bot_command" if match[0].startswith("/") else "mention"
        found.append({"type": kind, "offset": place, "length": len(match[0])})
    return found
