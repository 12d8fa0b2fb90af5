"""Telegram's updates as events; pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clew.core.chat import (
    CHANNEL,
    DM,
    GROUP,
    ButtonPressed,
    ChannelEvent,
    ChatMigrated,
    IgnoredEvent,
    MessageEdited,
    MessageReceived,
    MessageSender,
)
from clew.core.route import Route
from clew.gateway.channels.telegram.content import (
    begins_topic,
    content_of,
    entities_of,
    forward_of,
    name_of,
    replies_of,
)
from clew.gateway.channels.telegram.messages import outcome, plain, render, repeated

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "PLATFORM",
    "UPDATES",
    "Me",
    "outcome",
    "parse_update",
    "plain",
    "render",
    "repeated",
]

PLATFORM = "telegram"
#: The kinds of updates that are asked for.
UPDATES = ("message", "edited_message", "callback_query")

_KINDS = {"private": DM, "group": GROUP, "supergroup": GROUP, "channel": CHANNEL}
_COMMAND = re.compile(r"/\w+@(\w+)")

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Me:
    """The bot."""

    id: int
    username: str
    #: How routes name it.
    label: str | None = None


def parse_update(update: Mapping[str, Any], me: Me) -> ChannelEvent | IgnoredEvent:
    """The event that an update tells of, or what it was that says nothing to the agent."""
    if message := update.get("message"):
        return _migrated(message, me) or _heard(message, me)
    if message := update.get("edited_message"):
        return _edited(message, me)
    if pressed := update.get("callback_query"):
        return _pressed(pressed, me)
    kinds = sorted(update.keys() - {"update_id"})
    return IgnoredEvent(kind=f"update: {', '.join(kinds) or 'empty'}")


def _route(chat: Json, thread: int | None, me: Me) -> Route:
    return Route(
        platform=PLATFORM,
        kind=_KINDS.get(chat["type"], GROUP),
        chat=str(chat["id"]),
        account=me.label,
        thread=None if thread is None else str(thread),
    )


def _route_of(message: Json, me: Me) -> Route:
    thread = message.get("message_thread_id") if message.get("is_topic_message") else None
    return _route(message["chat"], thread, me)


def _event(message: Json) -> str:
    return f"{message['chat']['id']}:{message['message_id']}"


def _migrated(message: Json, me: Me) -> ChatMigrated | None:
    new = message.get("migrate_to_chat_id")
    if new is None:
        return None
    to = _route({"type": "supergroup", "id": new}, None, me)
    return ChatMigrated(event=_event(message), route=_route_of(message, me), to=to)


def _heard(message: Json, me: Me) -> MessageReceived | IgnoredEvent:
    sender = _sender(message, me)
    if isinstance(sender, IgnoredEvent):
        return sender
    content = content_of(message)
    if content.empty and content.service:
        return IgnoredEvent(kind=f"service: {content.service[0]}")
    passed_on = forward_of(message, content_of(message, quoted=True))
    text = "" if passed_on else _own(content.text, message, me)
    quoted = (*replies_of(message, me=me.id), *filter(None, [passed_on]))
    if content.empty and not quoted:
        return IgnoredEvent(kind="a message without content")
    return MessageReceived(
        event=_event(message),
        route=_route_of(message, me),
        sender=sender,
        message=str(message["message_id"]),
        text=text,
        lines=() if passed_on else content.lines,
        quoted=quoted,
        unsupported=content.unsupported,
        files=content.files,
        addressed=_addressed(message, me, own=passed_on is None),
        sent_at=_moment(message["date"]),
    )


def _edited(message: Json, me: Me) -> MessageEdited | IgnoredEvent:
    heard = _heard(message, me)
    if isinstance(heard, IgnoredEvent):
        return heard
    return MessageEdited.from_message(heard, at=message.get("edit_date", 0))


def _pressed(query: Json, me: Me) -> ButtonPressed | IgnoredEvent:
    message = query.get("message")
    if message is None or "data" not in query:
        return IgnoredEvent(kind="a button that is not the agent's")
    return ButtonPressed(
        event=f"press:{query['id']}",
        route=_route_of(message, me),
        sender=MessageSender(id=str(query["from"]["id"]), name=name_of(query["from"])),
        message=str(message["message_id"]),
        data=query["data"],
    )


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _sender(message: Json, me: Me) -> MessageSender | IgnoredEvent:
    """Who wrote it; other bots are passed over, so that two of them do not talk for ever."""
    # A group's anonymous administrators all have one user id: the group's is written instead.
    if chat := message.get("sender_chat"):
        return MessageSender(id=str(chat["id"]), name=chat.get("title", ""), person=False)
    user = message.get("from")
    if user is None:
        return IgnoredEvent(kind="a message of nobody")
    if user.get("is_bot") or user["id"] == me.id:
        return IgnoredEvent(kind="a message of a bot")
    return MessageSender(id=str(user["id"]), name=name_of(user))


def _own(text: str, message: Json, me: Me) -> str:
    if message["chat"]["type"] == "private" and re.fullmatch(r"/start(\s.*)?", text, re.DOTALL):
        # What the app's button sends to a bot that one has never spoken to.
        return "/help"
    name = re.escape(me.username)
    # The mention that only addresses the agent is none of what is said to it.
    said = re.sub(rf"^@{name}\b[,:]?\s*", "", text, flags=re.IGNORECASE)
    said = re.sub(rf"^(/\w+)@{name}\b", r"\1", said, flags=re.IGNORECASE)
    return said or text


def _addressed(message: Json, me: Me, *, own: bool) -> bool:
    if message["chat"]["type"] == "private":
        return True
    if _answers(message, me):
        return True
    # Nobody is addressed by words that somebody else wrote.
    text = (message.get("text") or message.get("caption") or "") if own else ""
    if found := _COMMAND.match(text):
        return found[1].lower() == me.username.lower()
    return text.startswith("/") or (own and _mentions(message, text, me))


def _answers(message: Json, me: Me) -> bool:
    """Whether it is a reply to the bot."""
    before: Json = message.get("reply_to_message") or {}
    author: Json = before.get("from") or {}
    return author.get("id") == me.id and not begins_topic(message)


def _mentions(message: Json, text: str, me: Me) -> bool:
    units = text.encode("utf-16-le", "surrogatepass")
    for entity in entities_of(message):
        user: Json = entity.get("user") or {}
        if entity["type"] == "text_mention" and user.get("id") == me.id:
            return True
        begins, ends = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
        name = units[begins:ends].decode("utf-16-le", "replace")
        if entity["type"] == "mention" and name.lower() == f"@{me.username.lower()}":
            return True
    return False


def parameters(chunk: str) -> Json:
    """What a chunk gives to ``sendMessage`` and ``editMessageText``, without the chat."""
    body: Json = json.loads(chunk)
    found: Json = {"text": body["text"], "link_preview_options": {"is_disabled": True}}
    if "entities" in body:
        found["entities"] = body["entities"]
    if "buttons" in body:
        rows = [[{"text": label, "callback_data": data}] for label, data in body["buttons"]]
        found["reply_markup"] = {"inline_keyboard": rows}
    if "reply_to" in body:
        # The answer is sent also where the question was deleted meanwhile.
        found["reply_parameters"] = {
            "message_id": int(body["reply_to"]),
            "allow_sending_without_reply": True,
        }
    return found


def address(route: Route) -> Json:
    """The parameters that name a chat."""
    chat: Json = {"chat_id": int(route.chat)}
    if route.thread is not None:
        chat["message_thread_id"] = int(route.thread)
    return chat
