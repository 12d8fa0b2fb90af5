"""What people do on a fake Slack, and what is seen there."""

from __future__ import annotations

import abc
import time
from typing import TYPE_CHECKING, Any

from clew.testing.platform import FakePlatform
from clew.testing.slack.world import Json, Message, World, shown

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing.telegram.faults import Faults

TEAM, APP, BOT, BOT_USER = "T0FAKE", "A0FAKE", "B0FAKE", "U0CLEW"


def dm(user: str) -> str:
    """The direct chat with somebody."""
    return f"D{user.removeprefix('U')}"


class People(FakePlatform, abc.ABC):
    """The part of the fake that tests use."""

    def __init__(self, *, faults: Faults | None = None, log: Path | None = None) -> None:
        super().__init__(faults=faults, log=log)
        self._world = World()
        #: While set, messages with blocks are refused.
        self.refuse_blocks = False

    # What people do

    def say(self, text: str, *, user: str = "U42", channel: str | None = None, **more: Any) -> str:
        """Somebody writes, to the app alone or in a channel; the message's ts."""
        where = channel or dm(user)
        with self._lock:
            ts = self._world.next_ts()
            message = Message(ts, where, text, user, thread=more.get("thread_ts"))
            self._world.open(where)[ts] = message
            event = {**message.told(), **self._place(where), **more}
            self._world.add_envelope("events_api", self._event(event))
            if f"<@{BOT_USER}>" in text and channel is not None:
                # Slack tells of a mention twice, once as what it is.
                mention = {**event, "type": "app_mention"}
                mention.pop("channel_type")
                self._world.add_envelope("events_api", self._event(mention))
        self.look_again()
        return ts

    def edit(self, ts: str, text: str, *, user: str = "U42", channel: str | None = None) -> None:
        """Somebody changes what they wrote."""
        where = channel or dm(user)
        with self._lock:
            message = self._world.channels[where][ts]
            before, message.text = message.told(), text
            now = self._world.next_ts()
            changed = {**message.told(), "edited": {"user": user, "ts": now}}
            self._about(where, "message_changed", message=changed, previous_message=before)
        self.look_again()

    def delete(self, ts: str, *, user: str = "U42", channel: str | None = None) -> None:
        """Somebody deletes what they wrote."""
        where = channel or dm(user)
        with self._lock:
            before = self._world.channels[where].pop(ts).told()
            self._about(where, "message_deleted", deleted_ts=ts, previous_message=before)
        self.look_again()

    def command(
        self, name: str, text: str = "", *, user: str = "U42", channel: str | None = None
    ) -> str:
        """Somebody gives a slash command; its trigger."""
        where = channel or dm(user)
        with self._lock:
            self._world.open(where)
            trigger = f"{int(time.time() * 1000)}.{self._world.next_id()}.fake"
            payload = {
                "command": name,
                "text": text,
                "user_id": user,
                "user_name": "ada",
                "channel_id": where,
                "team_id": TEAM,
                "api_app_id": APP,
                "trigger_id": trigger,
            }
            self._world.add_envelope("slash_commands", payload)
        self.look_again()
        return trigger

    def press(self, label: str, *, user: str = "U42") -> None:
        """Somebody presses a button under the last message that has one."""
        with self._lock:
            under = [one for one in self.messages if one.buttons][-1]
            (button,) = [one for one in under.buttons if one["text"]["text"] == label]
            payload = {
                "type": "block_actions",
                "user": {"id": user, "name": "ada", "team_id": TEAM},
                "api_app_id": APP,
                "container": {
                    "type": "message",
                    "message_ts": under.ts,
                    "channel_id": under.channel,
                },
                "channel": {"id": under.channel},
                "message": under.told(),
                "trigger_id": f"{self._world.next_id()}.fake",
                "actions": [{**button, "action_ts": self._world.next_ts()}],
            }
            self._world.add_envelope("interactive", payload)
        self.look_again()

    def event(self, event: Json) -> None:
        """Any event, as it is."""
        with self._lock:
            self._world.add_envelope("events_api", self._event(event))
        self.look_again()

    def envelope(self, kind: str, payload: Json) -> None:
        """Any envelope, as it is."""
        with self._lock:
            self._world.add_envelope(kind, payload)
        self.look_again()

    def put_file(self, name: str, content: bytes, mimetype: str = "text/plain") -> Json:
        """A file that a message may name."""
        with self._lock:
            file_id = f"F{self._world.next_id()}"
            file = {
                "id": file_id,
                "name": name,
                "mimetype": mimetype,
                "size": len(content),
                "url_private_download": f"{self.url}/files-pri/{file_id}/{name}",
            }
            self._world.files[file_id] = file, content
        return file

    def put_group(self, group: str, users: list[str]) -> None:
        """A user group, and who is in it."""
        with self._lock:
            self._world.groups[group] = users

    def meet(self, user: str) -> None:
        """Somebody opens a chat with the app."""
        with self._lock:
            self._world.open(dm(user))

    def throttle(self, channel: str, seconds: float) -> None:
        """Take no calls to a channel for so long."""
        with self._lock:
            self._world.throttle(channel, seconds)

    def refuse(self, channel: str, error: str) -> None:
        """Answer every call to a channel with an error."""
        with self._lock:
            self._world.refused[channel] = error

    def remove(self, message: Message) -> None:
        """A message of the app is deleted by somebody."""
        with self._lock:
            del self._world.channels[message.channel][message.ts]

    def _about(self, channel: str, subtype: str, **more: Any) -> None:
        ts = self._world.next_ts()
        told = {"type": "message", "subtype": subtype, "hidden": True, "ts": ts, "event_ts": ts}
        event = {**told, **self._place(channel), **more}
        self._world.add_envelope("events_api", self._event(event))

    def _place(self, channel: str) -> Json:
        return {"channel": channel, "channel_type": "im" if channel[0] == "D" else "channel"}

    def _event(self, event: Json) -> Json:
        return {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": APP,
            "event_id": f"Ev{self._world.next_id()}",
            "event_time": int(time.time()),
            "event": event,
        }

    # What is seen

    @property
    def messages(self) -> list[Message]:
        """What the app wrote, in the order of its sending."""
        with self._lock:
            every = (one for channel in self._world.channels.values() for one in channel.values())
            return sorted((one for one in every if one.by_app), key=lambda one: one.sent_n)

    def texts(self, channel: str) -> list[str]:
        """What the app wrote in a channel, as it is shown now."""
        return [shown(one.text, one.blocks) for one in self.messages if one.channel == channel]

    @property
    def whispered(self) -> list[tuple[str, str, str]]:
        """What only one person was told: channel, user, text."""
        with self._lock:
            return list(self._world.whispered)

    @property
    def waiting(self) -> int:
        """Envelopes that were not acknowledged."""
        with self._lock:
            return len(self._world.unacknowledged)
