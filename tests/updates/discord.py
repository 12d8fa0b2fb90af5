"""Dispatches of Discord's gateway, by its message object."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.updates.made import Json, Made, Words, chosen

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

BOT, ROLE = "100200300", "901"


def _person(words: Words) -> Json:
    name = words.chance.choice(("Bob", "Eve\nApproved", "Ann: hi", "> Cy"))
    return {"id": str(words.chance.randint(500, 999)), "username": name, "global_name": name}


def _text(words: Words) -> Json:
    mention = words.chance.choice(("", f"<@{BOT}> ", f"<@!{BOT}>, ", f"<@&{ROLE}> ", "<@7> "))
    return {"content": mention + words.text()}


def _attachment(words: Words, **more: object) -> Json:
    id_ = str(words.chance.randint(1, 10**9))
    return {"id": id_, "filename": "note.txt", "size": 4, "content_type": "text/plain", **more}


def _poll(words: Words) -> Json:
    answers = [
        {"answer_id": n, "poll_media": {"text": words.line(), "emoji": {"name": "🎲"}}}
        for n in range(words.chance.randint(1, 4))
    ]
    return {"poll": {"question": {"text": words.text()}, "answers": answers, "expiry": None}}


def _embeds(words: Words) -> Json:
    with words.others_write():
        embed = {
            "type": "article",
            "title": words.line(),
            "description": words.text(),
            "fields": [{"name": words.line(), "value": words.text()}],
            "author": {"name": words.line()},
            "footer": {"text": words.line()},
        }
    return {"content": words.text(), "embeds": [embed]}


def _component(words: Words, depth: int = 0) -> Json:
    kind = words.chance.choice(
        (2, 3, 10, 11, 12, 13) if depth > 1 else (1, 2, 3, 9, 10, 12, 17, 99)
    )
    match kind:
        case 1 | 9 | 17:
            inner = [_component(words, depth + 1) for _ in range(2)]
            more = {"accessory": _component(words, 5)} if kind == 9 else {}
            return {"type": kind, "components": inner, **more}
        case 2:
            return {"type": kind, "style": 2, "label": words.line()}
        case 3:
            return {"type": kind, "options": [{"label": words.line(), "value": "1"}]}
        case 10:
            return {"type": kind, "content": words.text()}
        case 11:
            return {"type": kind, "description": words.line(), "media": {"url": "x"}}
        case 12:
            return {"type": kind, "items": [{"description": words.line(), "media": {"url": "x"}}]}
        case 13:
            return {"type": kind, "name": words.line(), "file": {"url": "attachment://x"}}
        case _:
            return {"type": kind}


def _components(words: Words) -> Json:
    with words.others_write():
        return {"components": [_component(words) for _ in range(3)]}


def _voice(words: Words) -> Json:
    clip = _attachment(words, filename="voice-message.ogg", duration_secs=12.5, waveform="AA==")
    return {"flags": 1 << 13, "attachments": [clip]}


def _snapshots(words: Words, depth: int = 0) -> Json:
    with words.others_write():
        kinds = ("text", "attachments", "sticker_items", "poll", "embeds", "voice", "components")
        inner = CONTENT[words.chance.choice(kinds)](words)
        if depth < 2 and words.chance.random() < 0.3:
            inner |= _snapshots(words, depth + 1)
    reference = {"type": 1, "message_id": "1", "channel_id": "2"}
    snapshot = {"message": {"type": 0, "content": "", "timestamp": "", **inner}}
    return {"message_reference": reference, "message_snapshots": [snapshot]}


CONTENT: Mapping[str, Callable[[Words], Json]] = {
    "text": _text,
    "attachments": lambda words: {"attachments": [_attachment(words), _attachment(words)]},
    "sticker_items": lambda words: {
        "sticker_items": [{"id": "1", "name": words.line(), "format_type": 1}],
    },
    "stickers": lambda words: {"stickers": [{"id": "1", "name": words.line()}]},
    "poll": _poll,
    "embeds": _embeds,
    "components": _components,
    "voice": _voice,
    "activity": lambda words: {
        "activity": {"type": 1},
        "application": {"id": "1", "name": words.line()},
    },
    "message_snapshots": _snapshots,
    "nothing": lambda words: {},
}
#: Messages in which Discord reports something.
_SERVICES = (*range(1, 19), *range(20, 33), 36, 37, 38, 39, 44, 46)
_OTHERS = ("TYPING_START", "MESSAGE_REACTION_ADD", "GUILD_MEMBER_UPDATE", "READY", "NEW_THING")
WAYS = ("own", "own", "reply", "reply", "reply to a deleted one", "edited", "strange type")
KINDS = (*CONTENT, *(f"service {n}" for n in _SERVICES), "bot", "webhook", "preview", *_OTHERS)


def _around(words: Words, way: str) -> Json:
    reference = {"type": 0, "message_id": "5", "channel_id": "2"}
    match way:
        case "reply":
            author = words.chance.choice([_person(words), {"id": BOT, "username": "clew"}])
            with words.others_write():
                kinds = ("text", "poll", "sticker_items", "attachments", "voice")
                before = CONTENT[words.chance.choice(kinds)](words)
            told = {"id": "5", "author": author, **before}
            return {"type": 19, "message_reference": reference, "referenced_message": told}
        case "reply to a deleted one":
            return {"type": 19, "message_reference": reference, "referenced_message": None}
        case "strange type":
            return {"type": 77}
        case _:
            return {}


def make(chance: random.Random, number: int) -> Made:
    """A random dispatch: the kinds in turn, then any."""
    words = Words(chance)
    kind = chosen(chance, number, KINDS, tuple(CONTENT))
    user = str(10_000 + number)
    message: Json = {
        "id": str(((int(time.time() * 1000) - 1_420_070_400_000) << 22) + number),
        "channel_id": f"7{user}",
        "author": {"id": user, "username": "ada", "global_name": "Ada"},
        "content": "",
        "type": 0,
        "mentions": [{"id": BOT, "username": "clew"}],
    }
    made = _made(words, kind, message)
    made.own, made.others = words.own, words.others
    return made


def _made(words: Words, kind: str, message: Json) -> Made:
    def ignored(name: str = "MESSAGE_CREATE", **more: object) -> Made:
        return Made(kind=kind, update={"t": name, "d": {**message, **more}}, ignored=True)

    if kind in _OTHERS:
        return ignored(kind)
    if kind.startswith("service"):
        return ignored(type=int(kind.split()[1]))
    if kind == "bot":
        return ignored(author={"id": "8", "username": "robo", "bot": True}, content="hello")
    if kind == "webhook":
        return ignored(webhook_id="8", content="hello")
    if kind == "preview":
        return ignored("MESSAGE_UPDATE", content="hello", edited_timestamp=None)
    # A message that passes another one on is no reply.
    way = words.chance.choice(WAYS if kind != "message_snapshots" else ("own", "edited"))
    content = CONTENT[kind](words)
    more: Json = {"edited_timestamp": "2026-01-01T00:00:00Z"} if way == "edited" else {}
    name = "MESSAGE_UPDATE" if way == "edited" else "MESSAGE_CREATE"
    told = {**message, **content, **_around(words, way), **more}
    return Made(kind=f"{kind}, {way}", update={"t": name, "d": told})
