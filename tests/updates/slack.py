"""Envelopes of Slack, by its message events, blocks and attachments."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.updates.made import Json, Made, Words, chosen

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

ME, GROUP = "U0CLEW", "S1"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _text(words: Words) -> Json:
    mention = words.chance.choice(("", f"<@{ME}> ", f"<!subteam^{GROUP}|@team> ", "<@U7> "))
    return {"text": mention + _escaped(words.text())}


def _rich(words: Words) -> Json:
    def inline() -> Json:
        kind = words.chance.choice(("text", "link", "emoji", "user", "usergroup", "channel"))
        match kind:
            case "text":
                return {"type": kind, "text": words.text()}
            case "link":
                return {
                    "type": kind,
                    "url": f"https://e.example/{words.one()}",
                    "text": words.line(),
                }
            case _:
                return {
                    "type": kind,
                    "name": "wave",
                    "user_id": "U7",
                    "usergroup_id": "S9",
                    "channel_id": "C9",
                }

    section = {"type": "rich_text_section", "elements": [inline() for _ in range(3)]}
    kind = words.chance.choice(("rich_text_list", "rich_text_quote", "rich_text_preformatted"))
    inner = [section] if kind == "rich_text_list" else [inline(), inline()]
    return {"type": "rich_text", "elements": [section, {"type": kind, "elements": inner}]}


def _plain(words: Words) -> Json:
    kind = words.chance.choice(("plain_text", "mrkdwn"))
    return {"type": kind, "text": _escaped(words.text())}


def _block(words: Words) -> Json:
    kind = words.chance.choice(
        (
            "rich_text",
            "section",
            "header",
            "context",
            "image",
            "video",
            "table",
            "markdown",
            "actions",
            "divider",
            "hologram",
        )
    )
    match kind:
        case "rich_text":
            return _rich(words)
        case "section":
            return {"type": kind, "text": _plain(words), "fields": [_plain(words)]}
        case "context":
            return {"type": kind, "elements": [_plain(words), _plain(words)]}
        case "image" | "video":
            return {"type": kind, "title": _plain(words), "alt_text": words.line()}
        case "table":
            return {"type": kind, "rows": [[{"type": "raw_text", "text": words.line()}]]}
        case "markdown":
            return {"type": kind, "text": words.text()}
        case "actions":
            return {"type": kind, "elements": [{"type": "button", "text": _plain(words)}]}
        case "header":
            return {"type": kind, "text": _plain(words)}
        case _:
            return {"type": kind}


def _blocks(words: Words) -> Json:
    return {"text": "", "blocks": [_block(words) for _ in range(words.chance.randint(1, 3))]}


def _file(words: Words, **more: object) -> Json:
    id_ = f"F{words.chance.randint(1, 10**9)}"
    return {"id": id_, "name": words.chance.choice(("note.txt", "a\nb")), "size": 4, **more}


def _files(words: Words) -> Json:
    mode = words.chance.choice(("hosted", "snippet", "external", "tombstone", "hidden_by_limit"))
    clip = words.chance.choice(({}, {"subtype": "slack_audio", "duration_ms": 12_000}))
    files = [_file(words, mode=mode), _file(words, mode="hosted", **clip)]
    return {"subtype": "file_share", "files": files}


def _share(words: Words, *, depth: int = 0) -> Json:
    with words.others_write():
        attachment: Json = {
            "is_share": True,
            "is_msg_unfurl": True,
            "author_id": "U7",
            "channel_id": "C7",
            "author_name": words.chance.choice(("Bob", "Eve\nApproved", "")),
            "ts": "1.1",
            "from_url": "https://e.slack.com/archives/C7/p11",
        }
        match words.chance.choice(("text", "blocks", "files")):
            case "text":
                attachment["text"] = _escaped(words.text())
            case "blocks":
                inner = {"message": {"blocks": [_block(words), _rich(words)]}}
                attachment["message_blocks"] = [inner]
            case _:
                attachment |= {"text": words.one(), "files": [_file(words)]}
    own = {"text": _escaped(words.text())} if words.chance.random() < 0.5 else {"text": ""}
    return {**own, "attachments": [attachment]}


def _preview(words: Words) -> Json:
    with words.others_write():
        attachment: Json = {
            "service_name": "News",
            "title": words.line(),
            "text": _escaped(words.text()),
            "fields": [{"title": words.line(), "value": words.line()}],
            "fallback": "x",
        }
    return {"text": f"<https://e.example|{words.one()}>", "attachments": [attachment]}


def _root(words: Words) -> Json:
    with words.others_write():
        root = {"type": "message", "user": "U7", "ts": "1.1", "text": _escaped(words.text())}
    return {"subtype": "thread_broadcast", "text": words.one(), "root": root, "thread_ts": "1.1"}


CONTENT: Mapping[str, Callable[[Words], Json]] = {
    "text": _text,
    "blocks": _blocks,
    "files": _files,
    "share": _share,
    "preview": _preview,
    "thread_broadcast": _root,
    "me_message": lambda words: {"subtype": "me_message", "text": words.line()},
    "strange subtype": lambda words: {"subtype": "telepathy", "text": words.line()},
}
_SERVICES = (
    "channel_join",
    "channel_leave",
    "channel_topic",
    "channel_purpose",
    "channel_name",
    "channel_archive",
    "group_join",
    "bot_message",
    "message_replied",
    "pinned_item",
    "tombstone",
    "reminder_add",
    "huddle_thread",
    "bot_add",
)
_OTHERS = ("reaction_added", "member_joined_channel", "new_thing")
WAYS = ("own", "own", "edited", "in a thread")
KINDS = (*CONTENT, *_SERVICES, *_OTHERS, "bot", "own message", "interactive", "empty")


def make(chance: random.Random, number: int) -> Made:
    """A random envelope: the kinds in turn, then any."""
    words = Words(chance)
    kind = chosen(chance, number, KINDS, tuple(CONTENT))
    user = f"U{10_000 + number}"
    channel = f"D{10_000 + number}"
    message: Json = {
        "type": "message",
        "channel": channel,
        "channel_type": "im",
        "user": user,
        "ts": f"{int(time.time())}.{number:06d}",
        "text": "",
    }
    made = _made(words, kind, message)
    made.own, made.others = words.own, words.others
    return made


def _event(kind: str, event: Json, *, ignored: bool = False) -> Made:
    envelope = {"type": "events_api", "payload": {"event": event}}
    return Made(kind=kind, update=envelope, ignored=ignored)


def _made(words: Words, kind: str, message: Json) -> Made:
    if kind in _OTHERS:
        return _event(kind, {**message, "type": kind}, ignored=True)
    if kind in _SERVICES:
        return _event(kind, {**message, "subtype": kind, "text": "x"}, ignored=True)
    if kind == "bot":
        return _event(kind, {**message, "bot_id": "B1", "text": "x"}, ignored=True)
    if kind == "own message":
        return _event(kind, {**message, "user": ME, "text": "x"}, ignored=True)
    if kind == "empty":
        return _event(kind, message, ignored=True)
    if kind == "interactive":
        told = {"type": "interactive", "payload": {"type": "view_submission"}}
        return Made(kind=kind, update=told, ignored=True)
    way = words.chance.choice(WAYS)
    told = {**message, **CONTENT[kind](words)}
    if way == "in a thread":
        told["thread_ts"] = "1.1"
    if way == "edited":
        place = {key: told.pop(key) for key in ("channel", "channel_type")}
        changed = {**told, "edited": {"user": told["user"], "ts": "1800000000.1"}}
        event = {"type": "message", "subtype": "message_changed", "ts": "1.2", **place}
        before: Json = {**told, "text": "before", "blocks": []}
        return _event(f"{kind}, {way}", {**event, "message": changed, "previous_message": before})
    return _event(f"{kind}, {way}", told)
