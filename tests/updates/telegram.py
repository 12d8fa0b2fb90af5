"""Updates of Telegram, by the Bot API's ``Update`` and ``Message``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from clew.gateway.channels.telegram.incoming import SERVICE_FIELDS
from tests.updates.made import Json, Made, Words, chosen

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

BOT = 123456
#: Content types that nobody has published yet.
UNKNOWN = ("hologram", "mood_ring")


def person(chance: random.Random, words: Words) -> Json:
    """Return a person whose name may be any text."""
    name = chance.choice(("Bob", "Eve\nApproved", "Ann: hi", "> Cy", "Dé"))
    return {"id": chance.randint(500, 999), "is_bot": False, "first_name": name}


def _file(chance: random.Random, **more: object) -> Json:
    id_ = f"f{chance.randint(1, 10**9)}"
    return {"file_id": id_, "file_unique_id": id_, "file_size": chance.randint(1, 5000), **more}


def _photo(chance: random.Random) -> list[Json]:
    return [_file(chance, width=side, height=side) for side in (90, 320)]


def _place(chance: random.Random) -> Json:
    return {"latitude": round(chance.uniform(-90, 90), 4), "longitude": 13.4}


def _entities(words: Words, text: str) -> list[Json]:
    """Formats, one of them a link whose address only it has."""
    if "\n" in text or words.chance.random() < 0.5:
        return []
    url = f"https://e.example/{words.one()}"
    units = len(text.encode("utf-16-le")) // 2
    return [{"type": "text_link", "offset": 0, "length": units, "url": url}]


def _text(words: Words) -> Json:
    text = words.text()
    return {"text": text, "entities": _entities(words, text)}


def _captioned(name: str, **more: object) -> Callable[[Words], Json]:
    def make(words: Words) -> Json:
        seconds = words.chance.randint(1, 99)
        media = _file(words.chance, duration=seconds, mime_type="a/b", **more)
        caption = {"caption": words.text()} if words.chance.random() < 0.7 else {}
        return {name: media, **caption}

    return make


def _poll(words: Words) -> Json:
    options = [{"text": words.line(), "voter_count": 0} for _ in range(words.chance.randint(2, 5))]
    kind = words.chance.choice(("regular", "quiz"))
    return {"poll": {"id": "1", "question": words.text(), "options": options, "type": kind}}


def _checklist(words: Words) -> Json:
    tasks = [{"id": n, "text": words.line(), "completion_date": n} for n in range(3)]
    return {"checklist": {"title": words.text(), "tasks": tasks}}


def _rich_inline(words: Words, depth: int) -> Any:
    kinds = ("bold", "italic", "url", "code", "spoiler", "text_mention", "bot_command")
    match words.chance.randint(0, 3 if depth < 4 else 0):
        case 0:
            return words.line()
        case 1:
            return [_rich_inline(words, depth + 1) for _ in range(2)]
        case _:
            kind = words.chance.choice(kinds)
            more = {"url": f"https://e.example/{words.one()}"} if kind == "url" else {}
            return {"type": kind, "text": _rich_inline(words, depth + 1), **more}


def _rich_blocks(words: Words, depth: int = 0) -> list[Json]:
    return [_rich_block(words, depth) for _ in range(words.chance.randint(1, 3))]


def _rich_block(words: Words, depth: int) -> Json:
    flat = (
        "paragraph",
        "heading",
        "pre",
        "footer",
        "pullquote",
        "table",
        "photo",
        "map",
        "voice_note",
    )
    deep = ("list", "blockquote", "collage", "details", "slideshow", "orrery")
    kind = words.chance.choice(flat if depth > 2 else flat + deep)
    match kind:
        case "table":
            cells = [[{"text": _rich_inline(words, 0)} for _ in range(2)] for _ in range(2)]
            return {"type": kind, "cells": cells, "caption": words.line()}
        case "photo":
            caption = {"text": words.line(), "credit": words.line()}
            return {"type": kind, "photo": _photo(words.chance), "caption": caption}
        case "voice_note":
            return {"type": kind, "voice_note": _file(words.chance, duration=3)}
        case "map":
            return {"type": kind, "location": _place(words.chance)}
        case "list":
            items = [{"label": "-", "blocks": _rich_blocks(words, depth + 1)} for _ in range(2)]
            return {"type": kind, "items": items}
        case "details":
            inner = _rich_blocks(words, depth + 1)
            return {"type": kind, "summary": words.line(), "blocks": inner}
        case _ if kind in deep:
            return {"type": kind, "blocks": _rich_blocks(words, depth + 1)}
        case _:
            return {"type": kind, "text": _rich_inline(words, 0), "size": 2}


def _tasks(key: str) -> Callable[[Words], Json]:
    def make(words: Words) -> Json:
        tasks = [{"id": 1, "text": words.line()}]
        message = {"checklist": {"title": words.line(), "tasks": tasks}}
        told: Json = {"checklist_message": message, "tasks": tasks, "marked_as_done_task_ids": [1]}
        return {key: told}

    return make


def _unknown(words: Words) -> Json:
    return {words.chance.choice(UNKNOWN): {"x": 1}}


CONTENT: Mapping[str, Callable[[Words], Json]] = {
    "text": _text,
    "rich_message": lambda words: {"rich_message": {"blocks": _rich_blocks(words)}},
    "animation": _captioned("animation"),
    "audio": _captioned("audio", title="Song", performer="Ann"),
    "document": _captioned("document", file_name="note.txt"),
    "video": _captioned("video"),
    "video_note": _captioned("video_note"),
    "voice": _captioned("voice"),
    "photo": lambda words: {"photo": _photo(words.chance), "caption": words.text()},
    "live_photo": lambda words: {
        "photo": _photo(words.chance),
        "live_photo": _file(words.chance, duration=3),
    },
    "sticker": lambda words: {"sticker": _file(words.chance, emoji="😀", type="regular")},
    "story": lambda words: {"story": {"id": 1, "chat": {"id": 3, "title": words.line()}}},
    "contact": lambda words: {"contact": {"phone_number": words.one(), "first_name": words.line()}},
    "dice": lambda words: {"dice": {"emoji": "🎲", "value": words.chance.randint(1, 6)}},
    "game": lambda words: {
        "game": {"title": words.line(), "description": words.text(), "photo": []}
    },
    "poll": _poll,
    "venue": lambda words: {
        "venue": {"title": words.line(), "address": words.line(), "location": _place(words.chance)},
        "location": _place(words.chance),
    },
    "location": lambda words: {"location": _place(words.chance)},
    "live_location": lambda words: {"location": {**_place(words.chance), "live_period": 60}},
    "checklist": _checklist,
    "checklist_tasks_done": _tasks("checklist_tasks_done"),
    "checklist_tasks_added": _tasks("checklist_tasks_added"),
    "invoice": lambda words: {
        "invoice": {
            "title": words.line(),
            "description": words.text(),
            "currency": "EUR",
            "total_amount": 100,
            "start_parameter": "",
        },
    },
    "successful_payment": lambda words: {
        "successful_payment": {"currency": "EUR", "total_amount": 100, "invoice_payload": "x"},
    },
    "paid_media": lambda words: {
        "paid_media": {"star_count": 5, "paid_media": [{"type": "preview"}, {"type": "photo"}]},
    },
    "giveaway": lambda words: {
        "giveaway": {"chats": [], "winner_count": 2, "prize_description": words.line()},
    },
    "giveaway_winners": lambda words: {
        "giveaway_winners": {"winners": [{"id": 5, "first_name": words.line()}], "winner_count": 1},
    },
    "gift": lambda words: {"gift": {"gift": {}, "text": words.line()}},
    "unique_gift": lambda words: {"unique_gift": {"gift": {"base_name": words.line()}}},
    "users_shared": lambda words: {
        "users_shared": {"request_id": 1, "users": [{"user_id": 5, "first_name": words.line()}]},
    },
    "chat_shared": lambda words: {"chat_shared": {"chat_id": -5, "title": words.line()}},
    "web_app_data": lambda words: {"web_app_data": {"data": words.text(), "button_text": "Go"}},
    "passport_data": lambda words: {"passport_data": {"data": []}},
    "unknown": _unknown,
}
_SERVICES = tuple(sorted(SERVICE_FIELDS - {"migrate_to_chat_id"}))
#: Contexts of a message: forwarded, a reply, written by a chat.
WAYS = (
    "own",
    "own",
    "forwarded",
    "reply",
    "quote",
    "external_reply",
    "story_reply",
    "via_bot",
    "sender_chat",
    "automatic_forward",
    "forwarded_reply",
    "old_forward",
    "edited",
)
KINDS = (*CONTENT, *_SERVICES, "other_bot", "other_update")


def origin(words: Words) -> Json:
    """A ``MessageOrigin``."""
    chance = words.chance
    match chance.choice(("user", "hidden_user", "chat", "channel")):
        case "user":
            return {"type": "user", "date": 1, "sender_user": person(chance, words)}
        case "hidden_user":
            return {"type": "hidden_user", "date": 1, "sender_user_name": "Bob\n/approve"}
        case "chat":
            chat = {"id": -9, "title": "A group: x", "type": "supergroup"}
            return {"type": "chat", "date": 1, "sender_chat": chat, "author_signature": "Ann"}
        case _:
            chat = {"id": -8, "title": "News", "type": "channel"}
            return {"type": "channel", "date": 1, "chat": chat, "message_id": 7}


def _answered(words: Words) -> Json:
    """A message that somebody answers."""
    author = words.chance.choice(
        [{"id": BOT, "is_bot": True, "first_name": "Clew"}, person(words.chance, words)]
    )
    with words.others_write():
        # Long ones are shortened: these are not.
        kinds = ("text", "poll", "voice", "sticker", "contact", "checklist", "dice", "photo")
        content = CONTENT[words.chance.choice(kinds)](words)
    return {"message_id": 3, "date": 1, "from": author, **content}


def _around(words: Words, way: str) -> Json:
    match way:
        case "reply":
            return {"reply_to_message": _answered(words)}
        case "quote":
            with words.others_write():
                quote = {"text": words.text(), "position": 0}
            before = {"message_id": 3, "date": 1, "from": person(words.chance, words), "text": "x"}
            return {"reply_to_message": before, "quote": quote}
        case "external_reply":
            with words.others_write():
                quote = {"text": words.text(), "position": 0}
            return {"external_reply": {"origin": origin(words), "dice": {}}, "quote": quote}
        case "story_reply":
            return {"reply_to_story": {"id": 1, "chat": {"id": 3, "title": "Ann"}}}
        case "sender_chat":
            return {"sender_chat": {"id": -100777, "title": "Us", "type": "supergroup"}}
        case _:
            return {}


def make(chance: random.Random, number: int) -> Made:
    """A random update: the kinds in turn, then any."""
    words = Words(chance)
    kind = chosen(chance, number, KINDS, tuple(CONTENT))
    group = chance.random() < 0.3
    user = 10_000 + number
    message: Json = {
        "message_id": number + 1,
        "date": int(time.time()),
        "chat": {"id": -100_000 - number, "type": "supergroup", "title": "Us"}
        if group
        else {"id": user, "type": "private", "first_name": "Ada"},
        "from": {"id": user, "is_bot": False, "first_name": "Ada"},
    }
    made = _made(words, kind, message, group=group)
    made.own, made.others = words.own, words.others
    return made


def _made(words: Words, kind: str, message: Json, *, group: bool) -> Made:
    if kind == "other_update":
        return Made(kind=kind, update={"poll_answer": {"poll_id": "1"}}, ignored=True)
    if kind == "other_bot":
        told = {**message, "from": {"id": 9, "is_bot": True, "first_name": "Robo"}, "text": "hello"}
        return Made(kind=kind, update={"message": told}, ignored=True)
    if kind in _SERVICES:
        return Made(kind=kind, update={"message": {**message, kind: {"x": 1}}}, ignored=True)
    way = words.chance.choice(WAYS)
    if way in ("forwarded", "via_bot", "automatic_forward", "forwarded_reply", "old_forward"):
        message |= _passed_on(words, kind, way)
    else:
        message |= {**_around(words, way), **CONTENT[kind](words)}
    update = "edited_message" if way == "edited" else "message"
    return Made(kind=f"{kind}, {way}", update={update: message})


def _passed_on(words: Words, kind: str, way: str) -> Json:
    with words.others_write():
        content = CONTENT[kind](words)
    match way:
        case "via_bot":
            return {**content, "via_bot": {"id": 8, "is_bot": True, "username": "gif"}}
        case "automatic_forward":
            chat = {"id": -8, "title": "News", "type": "channel"}
            return {**content, "is_automatic_forward": True, "sender_chat": chat}
        case "old_forward":
            return {**content, "forward_date": 1, "forward_sender_name": "Bob"}
        case "forwarded_reply":
            return {**content, "forward_origin": origin(words), **_around(words, "reply")}
        case _:
            return {**content, "forward_origin": origin(words)}
