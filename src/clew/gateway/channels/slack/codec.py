"""Slack's envelopes as events; pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clew.core.chat import DM, GROUP, Deleted, Edited, Event, File, Heard, Pressed, Sender
from clew.core.route import Route
from clew.gateway.channels.slack.messages import (
    escape,
    plain_chunk,
    render,
    repeated,
    unescape,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "PLATFORM",
    "Me",
    "address",
    "escape",
    "parameters",
    "parse",
    "plain_chunk",
    "render",
    "repeated",
]

PLATFORM = "slack"

#: Kinds of messages that are something said; joins, topics and the like are not.
_SAID = (None, "file_share", "thread_broadcast", "me_message")
_REFERENCE = re.compile(r"<([^<>]*)>")

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Me:
    """The app in a workspace."""

    #: Of its bot: ``U…``.
    user: str
    #: ``B…``, where Slack told it.
    bot: str | None = None
    #: How routes name it.
    label: str | None = None
    #: The slash command that leads to all others: ``/clew stop`` is ``/stop``.
    command: str = "/clew"


def parse(envelope: Mapping[str, Any], me: Me) -> Event | None:
    """The event that an envelope tells of; ``None`` for what is of no interest."""
    payload: Json = envelope.get("payload") or {}
    match envelope.get("type"):
        case "events_api":
            return _event(payload["event"], me)
        case "slash_commands":
            return _command(payload, me)
        case "interactive" if payload.get("type") == "block_actions":
            return _pressed(payload, me)
        case _:
            return None


def _event(event: Json, me: Me) -> Event | None:
    if event.get("type") not in ("message", "app_mention"):
        return None
    match event.get("subtype"):
        case "message_changed":
            return _changed(event, me)
        case "message_deleted":
            return _deleted(event, me)
        case subtype if subtype in _SAID:
            return _heard(event, event["channel"], me)
        case _:
            return None


def _is_dm(channel: str, told: Json) -> bool:
    kind = told.get("channel_type")
    # Slack does not tell the kind everywhere, and the id of a direct chat begins with a D.
    return kind == "im" if kind else channel.startswith("D")


def _route(channel: str, told: Json, me: Me, *, thread: str | None) -> Route:
    return Route(
        platform=PLATFORM,
        kind=DM if _is_dm(channel, told) else GROUP,
        chat=channel,
        account=me.label,
        thread=thread,
    )


def _route_of(message: Json, channel: str, told: Json, me: Me) -> Route:
    """
    Where it is answered.

    In a channel each question begins a thread, in which its conversation goes on; in a direct chat
    there is one conversation, beside the threads that a person begins.
    """
    thread = message.get("thread_ts")
    if thread is None and not _is_dm(channel, told):
        thread = message["ts"]
    return _route(channel, told, me, thread=thread)


def _heard(message: Json, channel: str, me: Me, *, told: Json | None = None) -> Heard | None:
    user = message.get("user")
    # Other bots are not answered, so that two of them do not talk for ever.
    if user is None or user == me.user or message.get("bot_id"):
        return None
    files = tuple(_file(each) for each in message.get("files") or () if _is_there(each))
    raw = message.get("text") or ""
    text = said(raw, me)
    if not (text or files):
        return None
    told = told or message
    return Heard(
        event=f"{channel}:{message['ts']}",
        route=_route_of(message, channel, told, me),
        sender=Sender(id=user, name=message.get("username") or ""),
        message=message["ts"],
        text=text,
        files=files,
        addressed=_addressed(message, channel, told, raw, me),
        sent_at=datetime.fromtimestamp(float(message["ts"]), UTC),
    )


def _addressed(message: Json, channel: str, told: Json, raw: str, me: Me) -> bool:
    return (
        _is_dm(channel, told)
        or told.get("type") == "app_mention"
        or f"<@{me.user}>" in raw
        or f"<@{me.user}|" in raw
        # In a thread that the agent began.
        or message.get("parent_user_id") == me.user
    )


def _changed(event: Json, me: Me) -> Edited | None:
    message: Json = event["message"]
    before: Json = event.get("previous_message") or {}
    # Slack tells of previews of links in the same way.
    if "edited" not in message or message.get("text") == before.get("text"):
        return None
    heard = _heard(message, event["channel"], me, told=event)
    if heard is None:
        return None
    return Edited.of(heard, at=message["edited"]["ts"])


def _deleted(event: Json, me: Me) -> Deleted | None:
    before: Json = event.get("previous_message") or {}
    if before.get("user") in (None, me.user) or before.get("bot_id"):
        return None
    channel, gone = event["channel"], event["deleted_ts"]
    return Deleted(
        event=f"{channel}:{gone}:deleted",
        route=_route_of({**before, "ts": gone}, channel, event, me),
        original=f"{channel}:{gone}",
    )


def _command(payload: Json, me: Me) -> Heard:
    name, text = payload["command"], (payload.get("text") or "").strip()
    if name == me.command:
        text = f"/{text.removeprefix('/') or 'help'}"
    else:
        text = f"{name} {text}".rstrip()
    trigger = payload["trigger_id"]
    return Heard(
        event=f"command:{trigger}",
        route=_route(payload["channel_id"], {}, me, thread=None),
        sender=Sender(id=payload["user_id"], name=payload.get("user_name") or ""),
        message=trigger,
        text=said(text, me),
        # What it is begins the trigger's id: when it was given.
        sent_at=_moment_of(trigger),
    )


def _moment_of(trigger: str) -> datetime:
    found = re.match(r"\d+", trigger)
    # Milliseconds; where Slack changes the form, when does not matter.
    seconds = int(found[0]) / 1000 if found else 0.0
    return datetime.fromtimestamp(seconds % 4_000_000_000, UTC)


def _pressed(payload: Json, me: Me) -> Pressed | None:
    action = next((each for each in payload.get("actions", ()) if "value" in each), None)
    if action is None:
        return None
    container: Json = payload.get("container") or {}
    message: Json = payload.get("message") or {}
    place: Json = payload.get("channel") or {}
    channel = place.get("id") or container["channel_id"]
    ts = message.get("ts") or container["message_ts"]
    user: Json = payload["user"]
    return Pressed(
        event=f"press:{channel}:{ts}:{user['id']}:{action['action_ts']}",
        route=_route(
            channel, {}, me, thread=message.get("thread_ts") or container.get("thread_ts")
        ),
        sender=Sender(id=user["id"], name=user.get("name") or user.get("username") or ""),
        message=ts,
        data=action["value"],
    )


def _is_there(file: Json) -> bool:
    return "id" in file and file.get("mode") not in ("tombstone", "hidden_by_limit")


def _file(file: Json) -> File:
    return File(
        id=file["id"],
        name=file.get("name") or file.get("title") or "file",
        media_type=file.get("mimetype") or "application/octet-stream",
        size=file.get("size"),
    )


def said(raw: str, me: Me) -> str:
    """What somebody said, as they read it, without the mention that only addresses the agent."""
    name = re.escape(me.user)
    raw = re.sub(rf"^\s*<@{name}(\|[^<>]*)?>[,:]?\s*", "", raw)
    return unescape(_REFERENCE.sub(lambda found: _referred(found[1], me), raw)).strip()


def _referred(inner: str, me: Me) -> str:
    target, _, label = inner.partition("|")
    if target.startswith(("@", "#")):
        if label:
            return f"{target[0]}{label}"
        return "@you" if target == f"@{me.user}" else target
    if target.startswith("!"):
        return label or f"@{target[1:].partition('^')[0]}"
    if label and label != target and label not in target:
        return f"{label} ({target})"
    return target.removeprefix("mailto:") if label else target


def address(route: Route) -> Json:
    """The parameters that name a chat."""
    thread = {} if route.thread is None else {"thread_ts": route.thread}
    return {"channel": route.chat, **thread}


def parameters(chunk: str) -> Json:
    """What a chunk gives to ``chat.postMessage`` and ``chat.update``."""
    body: Json = json.loads(chunk)
    return {"text": body["text"], "blocks": body.get("blocks", []), "mrkdwn": False}
