"""Slack's envelopes as events; pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clew.core.chat import (
    DM,
    GROUP,
    ButtonPressed,
    ChannelEvent,
    IgnoredEvent,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    MessageSender,
)
from clew.core.quotation import Quoted, quote_reply
from clew.core.route import Route
from clew.gateway.channels.slack import content
from clew.gateway.channels.slack.content import content_of, groups_named
from clew.gateway.channels.slack.messages import escape, plain_chunk, render, repeated

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "PLATFORM",
    "Me",
    "address",
    "escape",
    "groups_in",
    "parameters",
    "parent_of",
    "parse",
    "plain_chunk",
    "render",
    "repeated",
    "thread_of",
    "was_heard",
]

PLATFORM = "slack"

#: Kinds of messages that are something said; joins, topics and the like are not.
_SAID = (None, "file_share", "thread_broadcast", "me_message", "document_mention")
#: Kinds of messages by which Slack reports something.
_SERVICE = frozenset(
    f"{place}_{what}"
    for place in ("channel", "group")
    for what in [
        "join",
        "leave",
        "topic",
        "purpose",
        "name",
        "archive",
        "unarchive",
        "convert_to_private",
        "convert_to_public",
        "posting_permissions",
    ]
) | frozenset(
    [
        "bot_add",
        "bot_remove",
        "bot_message",
        "message_replied",
        "pinned_item",
        "unpinned_item",
        "ekm_access_denied",
        "reminder_add",
        "reminder_delete",
        "tombstone",
        "assistant_app_thread",
        "sh_room_created",
        "sh_room_shared",
        "huddle_thread",
        "file_comment",
        "file_mention",
        "reply_broadcast",
        "joiner_notification",
        "joiner_notification_for_inviter",
        "app_conversation_join",
        "bot_enable",
        "bot_disable",
        "channel_canvas_updated",
        "slackbot_response",
    ]
)

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
    #: User groups that it is known to be in.
    groups: frozenset[str] = frozenset()


def groups_in(envelope: Mapping[str, Any]) -> frozenset[str]:
    """The user groups that a message mentions."""
    payload: Json = envelope.get("payload") or {}
    event: Json = payload.get("event") or {}
    return groups_named(event) | groups_named(event.get("message") or {})


def thread_of(envelope: Mapping[str, Any], me: Me) -> tuple[str, str] | None:
    """The channel and the thread that a message answers in, where others began it."""
    payload: Json = envelope.get("payload") or {}
    event: Json = payload.get("event") or {}
    thread = event.get("thread_ts")
    begins = thread in (None, event.get("ts"))
    if begins or "root" in event or event.get("parent_user_id") == me.user:
        return None
    return event["channel"], thread


def was_heard(message: Json, me: Me) -> bool:
    """Whether the agent has a message of a channel already: it is its own, or was meant for it."""
    raw: str = message.get("text") or ""
    return (
        message.get("user") == me.user
        or re.search(rf"<@{re.escape(me.user)}[|>]", raw) is not None
        or bool(groups_named(message) & me.groups)
    )


def parent_of(message: Json, me: Me) -> Quoted:
    """The first message of a thread, for those who answer in it."""
    author = "you" if message.get("user") == me.user else message.get("username")
    author = author or message.get("user")
    inner = content_of(message, me=me.user)
    told = [content.said(message.get("text") or "", me.user), inner.text, *inner.lines]
    told += [f"> {line}" for one in inner.quoted for line in one.text.splitlines()]
    told += [f"[file {file.name}]" for file in inner.files]
    return quote_reply(author, "\n".join(filter(None, told)))


def parse(envelope: Mapping[str, Any], me: Me) -> ChannelEvent | IgnoredEvent:
    """The event that an envelope tells of, or what it was that says nothing to the agent."""
    payload: Json = envelope.get("payload") or {}
    match envelope.get("type"):
        case "events_api":
            return _event(payload["event"], me)
        case "slash_commands":
            return _command(payload, me)
        case "interactive" if payload.get("type") == "block_actions":
            return _pressed(payload, me)
        case kind:
            return IgnoredEvent(kind=f"envelope: {kind} {payload.get('type') or ''}".rstrip())


def _event(event: Json, me: Me) -> ChannelEvent | IgnoredEvent:
    if event.get("type") not in ("message", "app_mention"):
        return IgnoredEvent(kind=f"event: {event.get('type')}")
    match event.get("subtype"):
        case "message_changed":
            return _changed(event, me)
        case "message_deleted":
            return _deleted(event, me)
        case subtype if subtype in _SERVICE:
            return IgnoredEvent(kind=f"service: {subtype}")
        case _:
            return _heard(event, event["channel"], me)


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


def _heard(
    message: Json, channel: str, me: Me, *, told: Json | None = None
) -> MessageReceived | IgnoredEvent:
    user = message.get("user")
    # Other bots are not answered, so that two of them do not talk for ever.
    if user is None:
        return IgnoredEvent(kind="a message of nobody")
    if user == me.user or message.get("bot_id"):
        return IgnoredEvent(kind="a message of a bot")
    raw = message.get("text") or ""
    inner = content_of(message, me=me.user)
    text = said(raw, me) or inner.text or content.said(raw, me.user)
    subtype = message.get("subtype")
    strange = () if subtype in _SAID else (f"message {subtype}",)
    root: Json = message.get("root") or {}
    quoted = (*((parent_of(root, me),) if root else ()), *inner.quoted)
    if not (text or inner.lines or quoted or inner.files or strange):
        return IgnoredEvent(kind="a message without content")
    told = told or message
    return MessageReceived(
        event=f"{channel}:{message['ts']}",
        route=_route_of(message, channel, told, me),
        sender=MessageSender(id=user, name=message.get("username") or ""),
        message=message["ts"],
        text=text,
        lines=inner.lines,
        quoted=quoted,
        unsupported=strange,
        files=inner.files,
        addressed=_addressed(message, channel, told, me),
        sent_at=datetime.fromtimestamp(float(message["ts"]), UTC),
    )


def _addressed(message: Json, channel: str, told: Json, me: Me) -> bool:
    return (
        _is_dm(channel, told)
        or told.get("type") == "app_mention"
        or was_heard(message, me)
        # In a thread that the agent began.
        or message.get("parent_user_id") == me.user
    )


def _changed(event: Json, me: Me) -> MessageEdited | IgnoredEvent:
    message: Json = event["message"]
    before: Json = event.get("previous_message") or {}
    # Slack tells of previews of links in the same way.
    same = all(message.get(key) == before.get(key) for key in ("text", "blocks"))
    if "edited" not in message or same:
        return IgnoredEvent(kind="preview of a link")
    heard = _heard(message, event["channel"], me, told=event)
    if isinstance(heard, IgnoredEvent):
        return heard
    return MessageEdited.from_message(heard, at=message["edited"]["ts"])


def _deleted(event: Json, me: Me) -> MessageDeleted | IgnoredEvent:
    before: Json = event.get("previous_message") or {}
    if before.get("user") in (None, me.user) or before.get("bot_id"):
        return IgnoredEvent(kind="a deleted message of a bot")
    channel, gone = event["channel"], event["deleted_ts"]
    return MessageDeleted(
        event=f"{channel}:{gone}:deleted",
        route=_route_of({**before, "ts": gone}, channel, event, me),
        original=f"{channel}:{gone}",
    )


def _command(payload: Json, me: Me) -> MessageReceived:
    name, text = payload["command"], (payload.get("text") or "").strip()
    if name == me.command:
        text = f"/{text.removeprefix('/') or 'help'}"
    else:
        text = f"{name} {text}".rstrip()
    trigger = payload["trigger_id"]
    return MessageReceived(
        event=f"command:{trigger}",
        route=_route(payload["channel_id"], {}, me, thread=None),
        sender=MessageSender(id=payload["user_id"], name=payload.get("user_name") or ""),
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


def _pressed(payload: Json, me: Me) -> ButtonPressed | IgnoredEvent:
    action = next((each for each in payload.get("actions", ()) if "value" in each), None)
    if action is None:
        return IgnoredEvent(kind="a control that is not the agent's")
    container: Json = payload.get("container") or {}
    message: Json = payload.get("message") or {}
    place: Json = payload.get("channel") or {}
    channel = place.get("id") or container["channel_id"]
    ts = message.get("ts") or container["message_ts"]
    user: Json = payload["user"]
    return ButtonPressed(
        event=f"press:{channel}:{ts}:{user['id']}:{action['action_ts']}",
        route=_route(
            channel, {}, me, thread=message.get("thread_ts") or container.get("thread_ts")
        ),
        sender=MessageSender(id=user["id"], name=user.get("name") or user.get("username") or ""),
        message=ts,
        data=action["value"],
    )


def said(raw: str, me: Me) -> str:
    """What somebody said, as they read it, without the mention that only addresses the agent."""
    name = re.escape(me.user)
    ours = "|".join([f"@{name}", *(rf"!subteam\^{re.escape(group)}" for group in me.groups)])
    return content.said(re.sub(rf"^\s*<({ours})(\|[^<>]*)?>[,:]?\s*", "", raw), me.user)


def address(route: Route) -> Json:
    """The parameters that name a chat."""
    thread = {} if route.thread is None else {"thread_ts": route.thread}
    return {"channel": route.chat, **thread}


def parameters(chunk: str) -> Json:
    """What a chunk gives to ``chat.postMessage`` and ``chat.update``."""
    body: Json = json.loads(chunk)
    return {"text": body["text"], "blocks": body.get("blocks", []), "mrkdwn": False}
