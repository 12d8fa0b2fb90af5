"""User actions on a fake Discord, and access to the results."""

from __future__ import annotations

import abc
import base64
import re
import time
from typing import TYPE_CHECKING, Any

from clew.testing.discord.state import GUILD, DiscordMessage, DiscordState, Json, current_time
from clew.testing.fake_platform import FakePlatform

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing.faults import FaultInjector

BOT_ID = "100200300"
#: Roles of the guild: everyone's, the bot's own, and another.
OWN_ROLE, OTHER_ROLE = "901", "902"
ROLES: list[Json] = [
    {"id": GUILD, "name": "@everyone", "managed": False},
    {"id": OWN_ROLE, "name": "clew", "managed": True, "tags": {"bot_id": BOT_ID}},
    {"id": OTHER_ROLE, "name": "helpers", "managed": False},
]


def dm_channel(user: str) -> str:
    """Return the id of the direct chat with a user."""
    return f"7{user}"


def build_user(user: str, name: str = "ada") -> Json:
    names = {"username": name, "global_name": name.title(), "discriminator": "0"}
    return {"id": user, **names, "avatar": None, "public_flags": 0}


class DiscordActions(FakePlatform, abc.ABC):
    """The part of the fake that tests use."""

    def __init__(
        self, *, faults: FaultInjector | None = None, log: Path | None = None, early: bool = False
    ) -> None:
        super().__init__(faults=faults, log=log)
        self._state = DiscordState()
        #: Dispatches before the first session, if they are to be delivered, too.
        self._early: list[tuple[str, Json]] | None = [] if early else None
        self.token = f"{base64.urlsafe_b64encode(BOT_ID.encode()).decode().rstrip('=')}.fake.token"
        self.me: Json = {**build_user(BOT_ID, "clew"), "bot": True}

    # User actions

    def open_channel(self, channel: str, *, parent: str | None = None) -> None:
        """Open a channel of the guild, or a thread of one."""
        with self._lock:
            more = {"type": 0 if parent is None else 11, "guild_id": GUILD, "name": channel}
            self._state.open_channel(channel, **more, **({"parent_id": parent} if parent else {}))

    def open_dm(self, user: str) -> None:
        """Open a user's chat with the bot."""
        with self._lock:
            self._state.open_channel(dm_channel(user))

    def post_message(
        self, text: str, *, user: str = "42", channel: str | None = None, **more: Any
    ) -> str:
        """Post a user's message to the bot alone or in a channel; return its id."""
        where = channel or dm_channel(user)
        with self._lock:
            self._state.open_channel(where)
            mentioned = [self.me] if re.search(rf"<@!?{BOT_ID}>", text) else []
            more = {"mention_roles": re.findall(r"<@&(\d+)>", text), **more}
            message = DiscordMessage(
                self._state.next_id(),
                where,
                build_user(user),
                text,
                {"mentions": mentioned, **more},
            )
            self._state.messages[where][message.id] = message
            self._add_dispatch(
                "MESSAGE_CREATE", {**message.to_json(), **self._channel_fields(where)}
            )
        return message.id

    def edit_message(
        self, message: str, text: str, *, user: str = "42", channel: str | None = None
    ) -> None:
        """Edit a user's message."""
        where = channel or dm_channel(user)
        with self._lock:
            found = self._state.messages[where][message]
            found.content = text
            changed = {
                **found.to_json(),
                "edited_timestamp": current_time(),
                **self._channel_fields(where),
            }
            self._add_dispatch("MESSAGE_UPDATE", changed)

    def delete_message(self, message: str, *, user: str = "42", channel: str | None = None) -> None:
        """Delete a user's message."""
        where = channel or dm_channel(user)
        with self._lock:
            del self._state.messages[where][message]
            gone = {"id": message, "channel_id": where, **self._channel_fields(where)}
            self._add_dispatch("MESSAGE_DELETE", gone)

    def send_command(
        self, name: str, text: str = "", *, user: str = "42", channel: str | None = None
    ) -> str:
        """Send a slash command; return the interaction's id."""
        options = [{"name": "text", "type": 3, "value": text}] if text else []
        data = {"id": "1", "type": 1, "name": name, "options": options}
        return self._add_interaction(2, user, channel or dm_channel(user), data=data)

    def press_button(self, label: str, *, user: str = "42") -> str:
        """Press a button under the last message that has any; return the interaction's id."""
        with self._lock:
            under = [one for one in self.sent if one.buttons][-1]
            (button,) = [one for one in under.buttons if one["label"] == label]
            data = {"component_type": 2, "custom_id": button["custom_id"]}
            return self._add_interaction(3, user, under.channel, data=data, message=under.to_json())

    def _add_interaction(self, kind: int, user: str, channel: str, **more: Any) -> str:
        with self._lock:
            self._state.open_channel(channel)
            id_ = self._state.next_id()
            place = self._channel_fields(channel)
            who = {"member": {"user": build_user(user)}} if place else {"user": build_user(user)}
            told = {"id": id_, "type": kind, "token": f"token-{id_}", "channel_id": channel}
            self._add_dispatch("INTERACTION_CREATE", {**told, **place, **who, **more})
        return id_

    def send_dispatch(self, kind: str, content: Json) -> None:
        """Dispatch any event, unchanged."""
        with self._lock:
            self._add_dispatch(kind, content)

    def add_file(self, name: str, content: bytes, **more: object) -> Json:
        """Store a file; return its attachment, for a message."""
        with self._lock:
            id_ = self._state.next_id()
            self._state.files[id_] = content
            url = f"{self.url}/attachments/{id_}/{name}"
            found: Json = {"id": id_, "filename": name, "size": len(content), "url": url}
            return {**found, "content_type": "text/plain; charset=utf-8", **more}

    def throttle_chat(self, channel: str, seconds: float) -> None:
        """Refuse calls to a channel for ``seconds``."""
        with self._lock:
            self._state.throttled_until[channel] = time.monotonic() + seconds

    def throttle_all(self, seconds: float) -> None:
        """Refuse all calls for ``seconds``."""
        with self._lock:
            self._state.all_throttled_until = time.monotonic() + seconds

    def block_bot(self, user: str) -> None:
        """Let a user block the bot."""
        with self._lock:
            self._state.blocked_channels.add(dm_channel(user))

    def drop_sessions(self) -> None:
        """Drop all sessions: none can be resumed, and their undelivered dispatches are lost."""
        with self._lock:
            self._state.sessions.clear()

    def _channel_fields(self, channel: str) -> Json:
        guild = self._state.channels[channel].get("guild_id")
        return {"guild_id": guild} if guild else {}

    def _add_dispatch(self, kind: str, content: Json) -> None:
        if self._early is not None:
            self._early.append((kind, content))
        for session in self._state.sessions.values():
            session.add_dispatch(kind, content)
        self.notify_news()

    # Results

    @property
    def sent(self) -> list[DiscordMessage]:
        """Return the bot's messages, in order of sending."""
        with self._lock:
            every = (one for channel in self._state.messages.values() for one in channel.values())
            mine = (one for one in every if one.author["id"] == BOT_ID)
            return sorted(mine, key=lambda one: one.sent_n)

    def list_texts(self, channel: str) -> list[str]:
        """Return the bot's messages in a channel, as shown now."""
        return [one.content for one in self.sent if one.channel == channel]

    @property
    def pending_count(self) -> int:
        """Return the number of dispatches of the newest session that are not acknowledged."""
        with self._lock:
            if not self._state.sessions:
                return 0
            session = list(self._state.sessions.values())[-1]
            return len(session.dispatches) - session.acknowledged

    def get_response(self, interaction: str) -> Json | None:
        """Return the response to an interaction, if any."""
        with self._lock:
            return self._state.interaction_responses.get(interaction)

    @property
    def commands(self) -> list[Json]:
        with self._lock:
            return list(self._state.commands)
