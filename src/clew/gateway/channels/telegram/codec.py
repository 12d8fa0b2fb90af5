"""Codec of Telegram: updates to events; pure."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clew.core.channel_events import (
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
from clew.gateway.channels.telegram.incoming import (
    get_display_name,
    get_entities,
    is_topic_reply,
    read_content,
    read_forward,
    read_replies,
)
from clew.gateway.channels.telegram.messages import (
    build_outcome,
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
    "UPDATE_TYPES",
    "TelegramIdentity",
    "build_outcome",
    "parse_update",
    "render",
    "render_file",
    "with_repeat_notice",
    "without_formatting",
]

PLATFORM = "telegram"
#: The kinds of updates to request.
UPDATE_TYPES = ("message", "edited_message", "callback_query")

_CHAT_KINDS = {"private": DM, "group": GROUP, "supergroup": GROUP, "channel": CHANNEL}
_COMMAND = re.compile(r"/\w+@(\w+)")

Json = dict[str, Any]


class TelegramIdentity(Record):
    """The bot's identity."""

    id: int
    username: str
    #: The account's name in routes.
    label: str | None = None


def parse_update(update: Mapping[str, Any], me: TelegramIdentity) -> ChannelEvent | IgnoredEvent:
    """Parse an update into an event, or into ``IgnoredEvent`` with its kind."""
    if message := update.get("message"):
        return _parse_migration(message, me) or _parse_message(message, me)
    if message := update.get("edited_message"):
        return _parse_edit(message, me)
    if pressed := update.get("callback_query"):
        return _parse_button(pressed, me)
    kinds = sorted(update.keys() - {"update_id"})
    return IgnoredEvent(kind=f"update: {', '.join(kinds) or 'empty'}")


def _build_route(chat: Json, thread: int | None, me: TelegramIdentity) -> Route:
    return Route(
        platform=PLATFORM,
        kind=_CHAT_KINDS.get(chat["type"], GROUP),
        chat=str(chat["id"]),
        account=me.label,
        thread=None if thread is None else str(thread),
    )


def _route_of(message: Json, me: TelegramIdentity) -> Route:
    thread = message.get("message_thread_id") if message.get("is_topic_message") else None
    return _build_route(message["chat"], thread, me)


def _event_id(message: Json) -> str:
    return f"{message['chat']['id']}:{message['message_id']}"


def _parse_migration(message: Json, me: TelegramIdentity) -> ChatMigrated | None:
    new = message.get("migrate_to_chat_id")
    if new is None:
        return None
    to = _build_route({"type": "supergroup", "id": new}, None, me)
    return ChatMigrated(event=_event_id(message), route=_route_of(message, me), to=to)


def _parse_message(message: Json, me: TelegramIdentity) -> MessageReceived | IgnoredEvent:
    sender = _parse_sender(message, me)
    if isinstance(sender, IgnoredEvent):
        return sender
    content = read_content(message)
    if content.is_empty and content.service:
        return IgnoredEvent(kind=f"service: {content.service[0]}")
    passed_on = read_forward(message, read_content(message, quoted=True))
    text = "" if passed_on else _read_own_text(content.text, message, me)
    quoted = (*read_replies(message, me=me.id), *filter(None, [passed_on]))
    if content.is_empty and not quoted:
        return IgnoredEvent(kind="a message without content")
    return MessageReceived(
        event=_event_id(message),
        route=_route_of(message, me),
        sender=sender,
        message=str(message["message_id"]),
        text=text,
        lines=() if passed_on else content.lines,
        quoted=quoted,
        unsupported=content.unsupported,
        files=content.files,
        addressed=_is_addressed(message, me, own=passed_on is None),
        sent_at=_to_datetime(message["date"]),
    )


def _parse_edit(message: Json, me: TelegramIdentity) -> MessageEdited | IgnoredEvent:
    heard = _parse_message(message, me)
    if isinstance(heard, IgnoredEvent):
        return heard
    return MessageEdited.from_message(heard, at=message.get("edit_date", 0))


def _parse_button(query: Json, me: TelegramIdentity) -> ButtonPressed | IgnoredEvent:
    message = query.get("message")
    if message is None or "data" not in query:
        return IgnoredEvent(kind="a button that is not the agent's")
    return ButtonPressed(
        event=f"press:{query['id']}",
        route=_route_of(message, me),
        sender=MessageSender(id=str(query["from"]["id"]), name=get_display_name(query["from"])),
        message=str(message["message_id"]),
        data=query["data"],
    )


def _to_datetime(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _parse_sender(message: Json, me: TelegramIdentity) -> MessageSender | IgnoredEvent:
    """Return the sender; other bots are ignored, so that two bots do not talk for ever."""
    # Anonymous administrators of a group share one user id: use the group's id instead.
    if chat := message.get("sender_chat"):
        return MessageSender(id=str(chat["id"]), name=chat.get("title", ""), person=False)
    user = message.get("from")
    if user is None:
        return IgnoredEvent(kind="a message of nobody")
    if user.get("is_bot") or user["id"] == me.id:
        return IgnoredEvent(kind="a message of a bot")
    return MessageSender(id=str(user["id"]), name=get_display_name(user))


def _read_own_text(text: str, message: Json, me: TelegramIdentity) -> str:
    if message["chat"]["type"] == "private" and re.fullmatch(r"/start(\s.*)?", text, re.DOTALL):
        # The app's Start button sends this to a new bot.
        return "/help"
    name = re.escape(me.username)
    # A mention that only addresses the agent is not part of the message.
    said = re.sub(rf"^@{name}\b[,:]?\s*", "", text, flags=re.IGNORECASE)
    said = re.sub(rf"^(/\w+)@{name}\b", r"\1", said, flags=re.IGNORECASE)
    return said or text


def _is_addressed(message: Json, me: TelegramIdentity, *, own: bool) -> bool:
    if message["chat"]["type"] == "private":
        return True
    if _is_reply_to_bot(message, me):
        return True
    # A forwarded text does not address the agent.
    text = (message.get("text") or message.get("caption") or "") if own else ""
    if found := _COMMAND.match(text):
        return found[1].lower() == me.username.lower()
    return text.startswith("/") or (own and _mentions_bot(message, text, me))


def _is_reply_to_bot(message: Json, me: TelegramIdentity) -> bool:
    """Return whether a message is a reply to the bot."""
    before: Json = message.get("reply_to_message") or {}
    author: Json = before.get("from") or {}
    return author.get("id") == me.id and not is_topic_reply(message)


def _mentions_bot(message: Json, text: str, me: TelegramIdentity) -> bool:
    units = text.encode("utf-16-le", "surrogatepass")
    for entity in get_entities(message):
        user: Json = entity.get("user") or {}
        if entity["type"] == "text_mention" and user.get("id") == me.id:
            return True
        begins, ends = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
        name = units[begins:ends].decode("utf-16-le", "replace")
        if entity["type"] == "mention" and name.lower() == f"@{me.username.lower()}":
            return True
    return False


def build_parameters(chunk: str) -> Json:
    """Return a chunk's parameters for ``sendMessage`` and ``editMessageText``, without chat."""
    body: Json = json.loads(chunk)
    found: Json = {"text": body["text"], "link_preview_options": {"is_disabled": True}}
    if "entities" in body:
        found["entities"] = body["entities"]
    if "buttons" in body:
        rows = [[{"text": label, "callback_data": data}] for label, data in body["buttons"]]
        found["reply_markup"] = {"inline_keyboard": rows}
    if "reply_to" in body:
        # The answer is sent even if the question was deleted meanwhile.
        found["reply_parameters"] = {
            "message_id": int(body["reply_to"]),
            "allow_sending_without_reply": True,
        }
    return found


def build_document(chunk: str) -> tuple[Json, dict[str, tuple[str, bytes, str]]] | None:
    """Return the parameters and the file of a chunk for ``sendDocument``, if it holds a text."""
    body: Json = json.loads(chunk)
    if "document" not in body:
        return None
    return build_upload(chunk, body["document"]["text"].encode())


def build_upload(chunk: str, content: bytes) -> tuple[Json, dict[str, tuple[str, bytes, str]]]:
    """Return the parameters and the file of a chunk for ``sendDocument``."""
    body: Json = json.loads(chunk)
    told = body["document"]
    caption = {"caption": body["text"]} if body["text"] else {}
    media_type = told.get("media_type", "text/plain; charset=utf-8")
    return caption, {"document": (told["name"], content, media_type)}


def build_target(route: Route) -> Json:
    """Return the parameters that identify a chat."""
    chat: Json = {"chat_id": int(route.chat)}
    if route.thread is not None:
        chat["message_thread_id"] = int(route.thread)
    return chat
