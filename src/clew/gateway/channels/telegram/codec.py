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
    Edited,
    Event,
    File,
    Heard,
    Moved,
    Pressed,
    Sender,
)
from clew.core.route import Route
from clew.gateway.channels.telegram.messages import plain, render, repeated

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PLATFORM", "UPDATES", "Me", "parse_update", "plain", "render", "repeated"]

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


def parse_update(update: Mapping[str, Any], me: Me) -> Event | None:
    """The event that an update tells of; ``None`` for what is of no interest."""
    if message := update.get("message"):
        return _migrated(message, me) or _heard(message, me)
    if message := update.get("edited_message"):
        return _edited(message, me)
    if pressed := update.get("callback_query"):
        return _pressed(pressed, me)
    return None


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


def _migrated(message: Json, me: Me) -> Moved | None:
    new = message.get("migrate_to_chat_id")
    if new is None:
        return None
    to = _route({"type": "supergroup", "id": new}, None, me)
    return Moved(event=_event(message), route=_route_of(message, me), to=to)


def _heard(message: Json, me: Me) -> Heard | None:
    sender = _sender(message, me)
    files = _files(message)
    text = _text(message, me)
    if sender is None or not (text or files):
        return None
    return Heard(
        event=_event(message),
        route=_route_of(message, me),
        sender=sender,
        message=str(message["message_id"]),
        text=text,
        files=files,
        addressed=_addressed(message, me),
        sent_at=_moment(message["date"]),
    )


def _edited(message: Json, me: Me) -> Edited | None:
    heard = _heard(message, me)
    if heard is None:
        return None
    return Edited.of(heard, at=message.get("edit_date", 0))


def _pressed(query: Json, me: Me) -> Pressed | None:
    message = query.get("message")
    if message is None or "data" not in query:
        return None
    return Pressed(
        event=f"press:{query['id']}",
        route=_route_of(message, me),
        sender=Sender(id=str(query["from"]["id"]), name=_name(query["from"])),
        message=str(message["message_id"]),
        data=query["data"],
    )


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _sender(message: Json, me: Me) -> Sender | None:
    """Who wrote it; ``None`` for other bots, so that two of them do not talk for ever."""
    # A group's anonymous administrators all have one user id: the group's is written instead.
    if chat := message.get("sender_chat"):
        return Sender(id=str(chat["id"]), name=chat.get("title", ""))
    user = message.get("from")
    if user is None or user.get("is_bot") or user["id"] == me.id:
        return None
    return Sender(id=str(user["id"]), name=_name(user))


def _name(user: Json) -> str:
    return " ".join(filter(None, [user.get("first_name"), user.get("last_name")]))


def _text(message: Json, me: Me) -> str:
    text: str = message.get("text") or message.get("caption") or ""
    if message["chat"]["type"] == "private" and re.fullmatch(r"/start(\s.*)?", text):
        # What the app's button sends to a bot that one has never spoken to.
        return "/help"
    name = re.escape(me.username)
    # The mention that only addresses the agent is none of what is said to it.
    text = re.sub(rf"^@{name}\b[,:]?\s*", "", text, flags=re.IGNORECASE)
    text = re.sub(rf"^(/\w+)@{name}\b", r"\1", text, flags=re.IGNORECASE)
    return text or _described(message)


def _described(message: Json) -> str:
    """What has no text, in words."""
    if sticker := message.get("sticker"):
        return f"[sticker {sticker.get('emoji', '')}]".replace(" ]", "]")
    if place := message.get("location"):
        return f"[location {place['latitude']}, {place['longitude']}]"
    if contact := message.get("contact"):
        return f"[contact {_name(contact)}, {contact.get('phone_number', '')}]"
    return ""


def _addressed(message: Json, me: Me) -> bool:
    if message["chat"]["type"] == "private":
        return True
    text = message.get("text") or message.get("caption") or ""
    if found := _COMMAND.match(text):
        return found[1].lower() == me.username.lower()
    return text.startswith("/") or _answers(message, me) or _mentions(message, text, me)


def _answers(message: Json, me: Me) -> bool:
    """Whether it is a reply to the bot; each message of a topic replies to the topic's first."""
    before: Json = message.get("reply_to_message") or {}
    if before.get("message_id") == message.get("message_thread_id"):
        return False
    author: Json = before.get("from") or {}
    return author.get("id") == me.id


def _mentions(message: Json, text: str, me: Me) -> bool:
    units = text.encode("utf-16-le")
    entities: list[Json] = message.get("entities") or message.get("caption_entities") or []
    for entity in entities:
        if entity["type"] == "text_mention" and entity["user"]["id"] == me.id:
            return True
        begins, ends = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
        name = units[begins:ends].decode("utf-16-le", "replace")
        if entity["type"] == "mention" and name.lower() == f"@{me.username.lower()}":
            return True
    return False


_MEDIA = {
    "document": ("file", "application/octet-stream"),
    "voice": ("voice.ogg", "audio/ogg"),
    "audio": ("audio.mp3", "audio/mpeg"),
    "video": ("video.mp4", "video/mp4"),
    "video_note": ("video.mp4", "video/mp4"),
    "animation": ("animation.mp4", "video/mp4"),
}


def _files(message: Json) -> tuple[File, ...]:
    if photos := message.get("photo"):
        return (_file(max(photos, key=lambda size: size["width"]), "photo.jpg", "image/jpeg"),)
    # An animation comes as a document, too: the first that is there is what was sent.
    for kind in ("animation", *_MEDIA):
        if media := message.get(kind):
            return (_file(media, *_MEDIA[kind]),)
    return ()


def _file(media: Json, name: str, media_type: str) -> File:
    return File(
        id=media["file_id"],
        name=media.get("file_name") or name,
        media_type=media.get("mime_type") or media_type,
        size=media.get("file_size"),
    )


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
