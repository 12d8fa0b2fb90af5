"""User actions on a fake Slack, and access to the results."""

from __future__ import annotations

import abc
import time
from typing import TYPE_CHECKING, Any

from clew.testing.fake_platform import FakePlatform
from clew.testing.slack.state import Json, SlackMessage, SlackState, visible_text

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing.faults import FaultInjector

TEAM_ID, APP_ID, BOT_ID, BOT_USER = "T0FAKE", "A0FAKE", "B0FAKE", "U0CLEW"


def dm_channel(user: str) -> str:
    """Return the id of the direct chat with a user."""
    return f"D{user.removeprefix('U')}"


class SlackActions(FakePlatform, abc.ABC):
    """The part of the fake that tests use."""

    def __init__(self, *, faults: FaultInjector | None = None, log: Path | None = None) -> None:
        super().__init__(faults=faults, log=log)
        self._state = SlackState()
        #: While set, messages with blocks are rejected.
        self.refuse_blocks = False

    # User actions

    def post_message(
        self, text: str, *, user: str = "U42", channel: str | None = None, **more: Any
    ) -> str:
        """Post a user's message to the app alone or in a channel; return its ``ts``."""
        where = channel or dm_channel(user)
        with self._lock:
            ts = self._state.next_ts()
            message = SlackMessage(ts, where, text, user, thread=more.get("thread_ts"))
            self._state.open_channel(where)[ts] = message
            event = {**message.to_json(), **self._channel_fields(where), **more}
            self._state.add_envelope("events_api", self._event_payload(event))
            if f"<@{BOT_USER}>" in text and channel is not None:
                # Slack sends two events for a mention, one of them as ``app_mention``.
                mention = {**event, "type": "app_mention"}
                mention.pop("channel_type")
                self._state.add_envelope("events_api", self._event_payload(mention))
        self.notify_news()
        return ts

    def edit_message(
        self, ts: str, text: str, *, user: str = "U42", channel: str | None = None
    ) -> None:
        """Edit a user's message."""
        where = channel or dm_channel(user)
        with self._lock:
            message = self._state.channels[where][ts]
            before, message.text = message.to_json(), text
            now = self._state.next_ts()
            changed = {**message.to_json(), "edited": {"user": user, "ts": now}}
            self._add_change(where, "message_changed", message=changed, previous_message=before)
        self.notify_news()

    def delete_message(self, ts: str, *, user: str = "U42", channel: str | None = None) -> None:
        """Delete a user's message."""
        where = channel or dm_channel(user)
        with self._lock:
            before = self._state.channels[where].pop(ts).to_json()
            self._add_change(where, "message_deleted", deleted_ts=ts, previous_message=before)
        self.notify_news()

    def send_command(
        self, name: str, text: str = "", *, user: str = "U42", channel: str | None = None
    ) -> str:
        """Send a slash command; return its trigger."""
        where = channel or dm_channel(user)
        with self._lock:
            self._state.open_channel(where)
            trigger = f"{int(time.time() * 1000)}.{self._state.next_id()}.fake"
            payload = {
                "command": name,
                "text": text,
                "user_id": user,
                "user_name": "ada",
                "channel_id": where,
                "team_id": TEAM_ID,
                "api_app_id": APP_ID,
                "trigger_id": trigger,
            }
            self._state.add_envelope("slash_commands", payload)
        self.notify_news()
        return trigger

    def press_button(self, label: str, *, user: str = "U42") -> None:
        """Press a button under the last message that has any."""
        with self._lock:
            under = [one for one in self.messages if one.buttons][-1]
            (button,) = [one for one in under.buttons if one["text"]["text"] == label]
            payload = {
                "type": "block_actions",
                "user": {"id": user, "name": "ada", "team_id": TEAM_ID},
                "api_app_id": APP_ID,
                "container": {
                    "type": "message",
                    "message_ts": under.ts,
                    "channel_id": under.channel,
                },
                "channel": {"id": under.channel},
                "message": under.to_json(),
                "trigger_id": f"{self._state.next_id()}.fake",
                "actions": [{**button, "action_ts": self._state.next_ts()}],
            }
            self._state.add_envelope("interactive", payload)
        self.notify_news()

    def send_event(self, event: Json) -> None:
        """Send any event, unchanged."""
        with self._lock:
            self._state.add_envelope("events_api", self._event_payload(event))
        self.notify_news()

    def send_envelope(self, kind: str, payload: Json) -> None:
        """Send any envelope, unchanged."""
        with self._lock:
            self._state.add_envelope(kind, payload)
        self.notify_news()

    def add_file(self, name: str, content: bytes, mimetype: str = "text/plain") -> Json:
        """Store a file; return its description, for a message."""
        with self._lock:
            file_id = f"F{self._state.next_id()}"
            file = {
                "id": file_id,
                "name": name,
                "mimetype": mimetype,
                "size": len(content),
                "url_private_download": f"{self.url}/files-pri/{file_id}/{name}",
            }
            self._state.files[file_id] = file, content
        return file

    def set_group(self, group: str, users: list[str]) -> None:
        """Set the members of a user group."""
        with self._lock:
            self._state.groups[group] = users

    def open_dm(self, user: str) -> None:
        """Open a user's chat with the app."""
        with self._lock:
            self._state.open_channel(dm_channel(user))

    def throttle_chat(self, channel: str, seconds: float) -> None:
        """Refuse calls to a channel for ``seconds``."""
        with self._lock:
            self._state.throttle_channel(channel, seconds)

    def refuse_chat(self, channel: str, error: str) -> None:
        """Answer every call to a channel with an error."""
        with self._lock:
            self._state.refused_channels[channel] = error

    def _add_change(self, channel: str, subtype: str, **more: Any) -> None:
        ts = self._state.next_ts()
        told = {"type": "message", "subtype": subtype, "hidden": True, "ts": ts, "event_ts": ts}
        event = {**told, **self._channel_fields(channel), **more}
        self._state.add_envelope("events_api", self._event_payload(event))

    def _channel_fields(self, channel: str) -> Json:
        return {"channel": channel, "channel_type": "im" if channel[0] == "D" else "channel"}

    def _event_payload(self, event: Json) -> Json:
        return {
            "type": "event_callback",
            "team_id": TEAM_ID,
            "api_app_id": APP_ID,
            "event_id": f"Ev{self._state.next_id()}",
            "event_time": int(time.time()),
            "event": event,
        }

    # Results

    @property
    def messages(self) -> list[SlackMessage]:
        """Return the app's messages, in order of sending."""
        with self._lock:
            every = (one for channel in self._state.channels.values() for one in channel.values())
            return sorted((one for one in every if one.by_app), key=lambda one: one.sent_n)

    def list_texts(self, channel: str) -> list[str]:
        """Return the app's texts in a channel, as shown now."""
        return [
            visible_text(one.text, one.blocks) for one in self.messages if one.channel == channel
        ]

    @property
    def ephemeral_messages(self) -> list[tuple[str, str, str]]:
        """Return the ephemeral messages: channel, user, text."""
        with self._lock:
            return list(self._state.ephemeral_messages)

    @property
    def pending_count(self) -> int:
        """Return the number of unacknowledged envelopes."""
        with self._lock:
            return len(self._state.unacknowledged)
