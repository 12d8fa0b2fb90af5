"""What people do on a fake Discord, and what is seen there."""

from __future__ import annotations

import abc
import base64
import re
import time
from typing import TYPE_CHECKING, Any

from clew.testing.discord.world import GUILD, Json, Message, World, now
from clew.testing.platform import FakePlatform

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing.telegram.faults import Faults

BOT = "100200300"
#: The roles of the guild: of everyone, the bot's own, and another.
OWN_ROLE, OTHER_ROLE = "901", "902"
ROLES: list[Json] = [
    {"id": GUILD, "name": "@everyone", "managed": False},
    {"id": OWN_ROLE, "name": "clew", "managed": True, "tags": {"bot_id": BOT}},
    {"id": OTHER_ROLE, "name": "helpers", "managed": False},
]


def dm(user: str) -> str:
    """The direct chat with somebody."""
    return f"7{user}"


def person(user: str, name: str = "ada") -> Json:
    names = {"username": name, "global_name": name.title(), "discriminator": "0"}
    return {"id": user, **names, "avatar": None, "public_flags": 0}


class People(FakePlatform, abc.ABC):
    """The part of the fake that tests use."""

    def __init__(
        self, *, faults: Faults | None = None, log: Path | None = None, early: bool = False
    ) -> None:
        super().__init__(faults=faults, log=log)
        self._world = World()
        #: What happened before any session was there, where that is to be told, too.
        self._early: list[tuple[str, Json]] | None = [] if early else None
        self.token = f"{base64.urlsafe_b64encode(BOT.encode()).decode().rstrip('=')}.fake.token"
        self.me: Json = {**person(BOT, "clew"), "bot": True}

    # What people do

    def open_channel(self, channel: str, *, parent: str | None = None) -> None:
        """A channel of the guild, or a thread of one."""
        with self._lock:
            more = {"type": 0 if parent is None else 11, "guild_id": GUILD, "name": channel}
            self._world.open(channel, **more, **({"parent_id": parent} if parent else {}))

    def meet(self, user: str) -> None:
        """Somebody opens a chat with the bot."""
        with self._lock:
            self._world.open(dm(user))

    def say(self, text: str, *, user: str = "42", channel: str | None = None, **more: Any) -> str:
        """Somebody writes, to the bot alone or in a channel; the message's id."""
        where = channel or dm(user)
        with self._lock:
            self._world.open(where)
            mentioned = [self.me] if re.search(rf"<@!?{BOT}>", text) else []
            more = {"mention_roles": re.findall(r"<@&(\d+)>", text), **more}
            message = Message(
                self._world.next_id(), where, person(user), text, {"mentions": mentioned, **more}
            )
            self._world.messages[where][message.id] = message
            self._dispatch("MESSAGE_CREATE", {**message.told(), **self._place(where)})
        return message.id

    def edit(
        self, message: str, text: str, *, user: str = "42", channel: str | None = None
    ) -> None:
        """Somebody changes what they wrote."""
        where = channel or dm(user)
        with self._lock:
            found = self._world.messages[where][message]
            found.content = text
            changed = {**found.told(), "edited_timestamp": now(), **self._place(where)}
            self._dispatch("MESSAGE_UPDATE", changed)

    def delete(self, message: str, *, user: str = "42", channel: str | None = None) -> None:
        """Somebody deletes what they wrote."""
        where = channel or dm(user)
        with self._lock:
            del self._world.messages[where][message]
            gone = {"id": message, "channel_id": where, **self._place(where)}
            self._dispatch("MESSAGE_DELETE", gone)

    def command(
        self, name: str, text: str = "", *, user: str = "42", channel: str | None = None
    ) -> str:
        """Somebody gives a slash command; the interaction's id."""
        options = [{"name": "text", "type": 3, "value": text}] if text else []
        data = {"id": "1", "type": 1, "name": name, "options": options}
        return self._interact(2, user, channel or dm(user), data=data)

    def press(self, label: str, *, user: str = "42") -> str:
        """Somebody presses a button under the last message that has one; the interaction's id."""
        with self._lock:
            under = [one for one in self.sent if one.buttons][-1]
            (button,) = [one for one in under.buttons if one["label"] == label]
            data = {"component_type": 2, "custom_id": button["custom_id"]}
            return self._interact(3, user, under.channel, data=data, message=under.told())

    def _interact(self, kind: int, user: str, channel: str, **more: Any) -> str:
        with self._lock:
            self._world.open(channel)
            id_ = self._world.next_id()
            place = self._place(channel)
            who = {"member": {"user": person(user)}} if place else {"user": person(user)}
            told = {"id": id_, "type": kind, "token": f"token-{id_}", "channel_id": channel}
            self._dispatch("INTERACTION_CREATE", {**told, **place, **who, **more})
        return id_

    def dispatch(self, kind: str, content: Json) -> None:
        """Any event, as it is."""
        with self._lock:
            self._dispatch(kind, content)

    def put_file(self, name: str, content: bytes, **more: object) -> Json:
        """An attachment that a message may name."""
        with self._lock:
            id_ = self._world.next_id()
            self._world.files[id_] = content
            url = f"{self.url}/attachments/{id_}/{name}"
            found: Json = {"id": id_, "filename": name, "size": len(content), "url": url}
            return {**found, "content_type": "text/plain; charset=utf-8", **more}

    def throttle(self, channel: str, seconds: float) -> None:
        """Take no calls to a channel for so long."""
        with self._lock:
            self._world.throttled[channel] = time.monotonic() + seconds

    def throttle_all(self, seconds: float) -> None:
        """Take no calls at all for so long."""
        with self._lock:
            self._world.throttled_all = time.monotonic() + seconds

    def block(self, user: str) -> None:
        """Somebody lets the bot write no more."""
        with self._lock:
            self._world.closed.add(dm(user))

    def forget_sessions(self) -> None:
        """No session can be taken up any more: what was not told is told to nobody."""
        with self._lock:
            self._world.sessions.clear()

    def _place(self, channel: str) -> Json:
        guild = self._world.channels[channel].get("guild_id")
        return {"guild_id": guild} if guild else {}

    def _dispatch(self, kind: str, content: Json) -> None:
        if self._early is not None:
            self._early.append((kind, content))
        for session in self._world.sessions.values():
            session.dispatch(kind, content)
        self.look_again()

    # What is seen

    @property
    def sent(self) -> list[Message]:
        """What the bot wrote, in the order of its sending."""
        with self._lock:
            every = (one for channel in self._world.messages.values() for one in channel.values())
            mine = (one for one in every if one.author["id"] == BOT)
            return sorted(mine, key=lambda one: one.sent_n)

    def texts(self, channel: str) -> list[str]:
        """What the bot wrote in a channel, as it is now."""
        return [one.content for one in self.sent if one.channel == channel]

    @property
    def waiting(self) -> int:
        """Dispatches that no client said it has, of the newest session."""
        with self._lock:
            if not self._world.sessions:
                return 0
            session = list(self._world.sessions.values())[-1]
            return len(session.told) - session.acknowledged

    def answered(self, interaction: str) -> Json | None:
        """What an interaction was answered with."""
        with self._lock:
            return self._world.answered.get(interaction)

    @property
    def commands(self) -> list[Json]:
        with self._lock:
            return list(self._world.commands)
