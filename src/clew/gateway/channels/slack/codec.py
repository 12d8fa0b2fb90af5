"""Codec of Slack: envelopes to events; pure."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clew.core.channel_events import (
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
from clew.core.quotation import AGENT, Quoted, quote_reply
from clew.core.route import Route
from clew.gateway.channels.slack import incoming
from clew.gateway.channels.slack.incoming import find_groups, read_content
from clew.gateway.channels.slack.messages import (
    build_document,
    escape_mrkdwn,
    render,
    render_file,
    with_repeat_notice,
    without_formatting,
)
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "PLATFORM",
    "SlackIdentity",
    "build_document",
    "build_parameters",
    "build_target",
    "escape_mrkdwn",
    "find_foreign_thread",
    "find_mentioned_groups",
    "parse_envelope",
    "read_parent",
    "render",
    "render_file",
    "was_received",
    "with_repeat_notice",
    "without_formatting",
]

PLATFORM = "slack"

#: Subtypes of messages that people write; joins, topics and the like are none.
_USER_SUBTYPES = (None, "file_share", "thread_broadcast", "me_message", "document_mention")
#: Subtypes of service messages.
_SERVICE_SUBTYPES = frozenset(
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


class SlackIdentity(Record):
    """The app's identity in a workspace."""

    #: The bot's user id: ``U…``.
    user: str
    #: The bot id: ``B…``, if Slack reported it.
    bot: str | None = None
    #: The account's name in routes.
    label: str | None = None
    #: The slash command that wraps all others: ``/clew stop`` is ``/stop``.
    command: str = "/clew"
    #: User groups that the app is known to be in.
    groups: frozenset[str] = frozenset()


def find_mentioned_groups(envelope: Mapping[str, Any]) -> frozenset[str]:
    """Return the user groups that an envelope's message mentions."""
    payload: Json = envelope.get("payload") or {}
    event: Json = payload.get("event") or {}
    return find_groups(event) | find_groups(event.get("message") or {})


def find_foreign_thread(envelope: Mapping[str, Any], me: SlackIdentity) -> tuple[str, str] | None:
    """Return channel and thread of a reply in a thread that others began; else ``None``."""
    payload: Json = envelope.get("payload") or {}
    event: Json = payload.get("event") or {}
    thread = event.get("thread_ts")
    begins = thread in (None, event.get("ts"))
    if begins or "root" in event or event.get("parent_user_id") == me.user:
        return None
    return event["channel"], thread


def was_received(message: Json, me: SlackIdentity) -> bool:
    """Return whether the agent has a channel's message already: its own, or addressed to it."""
    raw: str = message.get("text") or ""
    return (
        message.get("user") == me.user
        or re.search(rf"<@{re.escape(me.user)}[|>]", raw) is not None
        or bool(find_groups(message) & me.groups)
    )


def read_parent(message: Json, me: SlackIdentity) -> Quoted:
    """Return the first message of a thread as a quotation."""
    author = AGENT if message.get("user") == me.user else message.get("username")
    author = author or message.get("user")
    inner = read_content(message, me=me.user)
    told = [incoming.read_text(message.get("text") or "", me.user), inner.text, *inner.lines]
    told += [f"> {line}" for one in inner.quoted for line in one.text.splitlines()]
    told += [f"[file {file.name}]" for file in inner.files]
    return quote_reply(author, "\n".join(filter(None, told)))


def parse_envelope(envelope: Mapping[str, Any], me: SlackIdentity) -> ChannelEvent | IgnoredEvent:
    """Parse an envelope into an event, or into ``IgnoredEvent`` with its kind."""
    payload: Json = envelope.get("payload") or {}
    match envelope.get("type"):
        case "events_api":
            return _parse_event(payload["event"], me)
        case "slash_commands":
            return _parse_command(payload, me)
        case "interactive" if payload.get("type") == "block_actions":
            return _parse_button(payload, me)
        case kind:
            return IgnoredEvent(kind=f"envelope: {kind} {payload.get('type') or ''}".rstrip())


def _parse_event(event: Json, me: SlackIdentity) -> ChannelEvent | IgnoredEvent:
    if event.get("type") not in ("message", "app_mention"):
        return IgnoredEvent(kind=f"event: {event.get('type')}")
    match event.get("subtype"):
        case "message_changed":
            return _parse_edit(event, me)
        case "message_deleted":
            return _parse_deletion(event, me)
        case subtype if subtype in _SERVICE_SUBTYPES:
            return IgnoredEvent(kind=f"service: {subtype}")
        case _:
            return _parse_message(event, event["channel"], me)


def _is_dm(channel: str, told: Json) -> bool:
    kind = told.get("channel_type")
    # Slack does not always report the type; the id of a direct chat begins with a D.
    return kind == "im" if kind else channel.startswith("D")


def _build_route(channel: str, told: Json, me: SlackIdentity, *, thread: str | None) -> Route:
    return Route(
        platform=PLATFORM,
        kind=DM if _is_dm(channel, told) else GROUP,
        chat=channel,
        account=me.label,
        thread=thread,
    )


def _route_of(message: Json, channel: str, told: Json, me: SlackIdentity) -> Route:
    """
    Return the route on which a message is answered.

    In a channel each question begins a thread, in which its conversation continues. A
    direct chat has one conversation, besides the threads that people begin.
    """
    thread = message.get("thread_ts")
    if thread is None and not _is_dm(channel, told):
        thread = message["ts"]
    return _build_route(channel, told, me, thread=thread)


def _parse_message(
    message: Json, channel: str, me: SlackIdentity, *, told: Json | None = None
) -> MessageReceived | IgnoredEvent:
    user = message.get("user")
    # Other bots are not answered, so that two bots do not talk for ever.
    if user is None:
        return IgnoredEvent(kind="a message of nobody")
    if user == me.user or message.get("bot_id"):
        return IgnoredEvent(kind="a message of a bot")
    raw = message.get("text") or ""
    inner = read_content(message, me=me.user)
    text = read_own_text(raw, me) or inner.text or incoming.read_text(raw, me.user)
    subtype = message.get("subtype")
    strange = () if subtype in _USER_SUBTYPES else (f"message {subtype}",)
    root: Json = message.get("root") or {}
    quoted = (*((read_parent(root, me),) if root else ()), *inner.quoted)
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
        addressed=_is_addressed(message, channel, told, me),
        sent_at=datetime.fromtimestamp(float(message["ts"]), UTC),
    )


def _is_addressed(message: Json, channel: str, told: Json, me: SlackIdentity) -> bool:
    return (
        _is_dm(channel, told)
        or told.get("type") == "app_mention"
        or was_received(message, me)
        # A thread that the agent started.
        or message.get("parent_user_id") == me.user
    )


def _parse_edit(event: Json, me: SlackIdentity) -> MessageEdited | IgnoredEvent:
    message: Json = event["message"]
    before: Json = event.get("previous_message") or {}
    # Slack reports link previews in the same way.
    same = all(message.get(key) == before.get(key) for key in ("text", "blocks"))
    if "edited" not in message or same:
        return IgnoredEvent(kind="preview of a link")
    heard = _parse_message(message, event["channel"], me, told=event)
    if isinstance(heard, IgnoredEvent):
        return heard
    return MessageEdited.from_message(heard, at=message["edited"]["ts"])


def _parse_deletion(event: Json, me: SlackIdentity) -> MessageDeleted | IgnoredEvent:
    before: Json = event.get("previous_message") or {}
    if before.get("user") in (None, me.user) or before.get("bot_id"):
        return IgnoredEvent(kind="a deleted message of a bot")
    channel, gone = event["channel"], event["deleted_ts"]
    return MessageDeleted(
        event=f"{channel}:{gone}:deleted",
        route=_route_of({**before, "ts": gone}, channel, event, me),
        original=f"{channel}:{gone}",
    )


def _parse_command(payload: Json, me: SlackIdentity) -> MessageReceived:
    name, text = payload["command"], (payload.get("text") or "").strip()
    if name == me.command:
        text = f"/{text.removeprefix('/') or 'help'}"
    else:
        text = f"{name} {text}".rstrip()
    trigger = payload["trigger_id"]
    return MessageReceived(
        event=f"command:{trigger}",
        route=_build_route(payload["channel_id"], {}, me, thread=None),
        sender=MessageSender(id=payload["user_id"], name=payload.get("user_name") or ""),
        message=trigger,
        text=read_own_text(text, me),
        # The trigger id begins with the time of the command.
        sent_at=_trigger_time(trigger),
    )


def _trigger_time(trigger: str) -> datetime:
    found = re.match(r"\d+", trigger)
    # Milliseconds; if Slack changes the format, the exact time does not matter.
    seconds = int(found[0]) / 1000 if found else 0.0
    return datetime.fromtimestamp(seconds % 4_000_000_000, UTC)


def _parse_button(payload: Json, me: SlackIdentity) -> ButtonPressed | IgnoredEvent:
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
        route=_build_route(
            channel, {}, me, thread=message.get("thread_ts") or container.get("thread_ts")
        ),
        sender=MessageSender(id=user["id"], name=user.get("name") or user.get("username") or ""),
        message=ts,
        data=action["value"],
    )


def read_own_text(raw: str, me: SlackIdentity) -> str:
    """Return the text as people read it, without a mention that only addresses the agent."""
    name = re.escape(me.user)
    ours = "|".join([f"@{name}", *(rf"!subteam\^{re.escape(group)}" for group in me.groups)])
    return incoming.read_text(re.sub(rf"^\s*<({ours})(\|[^<>]*)?>[,:]?\s*", "", raw), me.user)


def build_target(route: Route) -> Json:
    """Return the parameters that identify a chat."""
    thread = {} if route.thread is None else {"thread_ts": route.thread}
    return {"channel": route.chat, **thread}


def build_parameters(chunk: str) -> Json:
    """Return the parameters of a chunk for ``chat.postMessage`` and ``chat.update``."""
    body: Json = json.loads(chunk)
    return {"text": body["text"], "blocks": body.get("blocks", []), "mrkdwn": False}
