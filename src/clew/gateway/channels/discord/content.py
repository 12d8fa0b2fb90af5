"""What a message of Discord holds, in words: its text, a line for each other thing; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew.core.chat import IncomingFile
from clew.core.quotation import (
    Quoted,
    format_item,
    format_recording,
    format_titled_item,
    quote_forwarded,
    quote_reply,
)
from clew.gateway.payload import Json, obj, objs, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REFERENCE = re.compile(r"<(?:(@!?|@&|#)(\d+)|a?(:\w+:)\d+|/([^:<>]+):\d+)>")
_VOICE = 1 << 13
#: What a reference to another message says: it was passed on.
_FORWARD = 1
#: Components within components, and messages within messages, are read so deep.
_DEEPEST = 6

#: Kinds of components: those that hold others, and those that hold text.
_ROW, _BUTTON, _SECTION, _TEXT, _THUMBNAIL, _GALLERY, _FILE, _LINE, _BOX = (
    1, 2, 9, 10, 11, 12, 13, 14, 17,
)  # fmt: skip
_CHOICES = (3, 5, 6, 7, 8)


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What a message holds."""

    text: str = ""
    lines: tuple[str, ...] = ()
    quoted: tuple[Quoted, ...] = ()
    files: tuple[IncomingFile, ...] = ()
    unsupported: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.text or self.lines or self.quoted or self.files or self.unsupported)


def name_of(user: Json, member: Json | None = None) -> str:
    """As somebody is called where they write."""
    found = (member or {}).get("nick") or user.get("global_name") or user.get("username")
    return text(found)


def readable(content: str, message: Json, *, me: str, roles: frozenset[str]) -> str:
    """Text with names in the place of ids."""
    mentioned = objs(message.get("mentions"))
    names = {str(one.get("id")): name_of(one, obj(one.get("member"))) for one in mentioned}
    names[me] = "you"
    names |= dict.fromkeys(roles, "you")
    names |= {
        str(one.get("id")): text(one.get("name")) for one in objs(message.get("mention_channels"))
    }
    return _REFERENCE.sub(lambda found: _referred(found, names), content).strip()


def _referred(found: re.Match[str], names: Mapping[str, str]) -> str:
    sign, id_, emoji, command = found.groups()
    if sign is None:
        return emoji or f"/{command}"
    return f"{sign[0]}{names.get(id_) or id_}"


def content_of(message: Json, place: Json, *, me: str, roles: frozenset[str]) -> Content:
    """
    What a message holds besides its own text, and that text.

    ``place`` is the message under which its files are found: for one that was passed on, the one
    that passed it on.
    """
    return _content(message, place, me=me, roles=roles, depth=0)


def _content(message: Json, place: Json, *, me: str, roles: frozenset[str], depth: int) -> Content:
    lines = [*_stickers(message), *_poll(message), *_activity(message), *_recorded(message)]
    files = [_file(place, one) for one in objs(message.get("attachments")) if one.get("id")]
    quoted = [*_replied(message, me=me, roles=roles), *_embeds(message)]
    found = Content(
        text=readable(text(message.get("content")), message, me=me, roles=roles),
        lines=tuple(lines),
        files=tuple(files),
        quoted=tuple(quoted),
    )
    if parts := "\n".join(_components(objs(message.get("components")), 0)):
        found = replace(found, quoted=(*found.quoted, Quoted(source="Components", text=parts)))
    return _with_snapshots(found, message, place, me=me, roles=roles, depth=depth)


def _with_snapshots(
    found: Content, message: Json, place: Json, *, me: str, roles: frozenset[str], depth: int
) -> Content:
    """Messages that were passed on: Discord does not tell whose they were."""
    for snapshot in objs(message.get("message_snapshots")):
        if depth >= _DEEPEST:
            return replace(found, quoted=(*found.quoted, quote_forwarded("", "…")))
        told = obj(snapshot.get("message"))
        inner = _content(told, place, me=me, roles=roles, depth=depth + 1)
        found = replace(
            found,
            files=(*found.files, *inner.files),
            quoted=(*found.quoted, quote_forwarded("", _described(inner, told)), *inner.quoted),
        )
    return found


def _described(content: Content, message: Json) -> str:
    files = [format_item("file", one.get("filename")) for one in objs(message.get("attachments"))]
    return "\n".join(filter(None, [content.text, *content.lines, *files]))


def _replied(message: Json, *, me: str, roles: frozenset[str]) -> Iterator[Quoted]:
    reference = obj(message.get("message_reference"))
    if not reference or reference.get("type") == _FORWARD:
        return
    before = obj(message.get("referenced_message"))
    if not before:
        if "referenced_message" in message:
            yield Quoted(source="In reply to a message that is deleted")
        return
    author = obj(before.get("author"))
    name = "you" if str(author.get("id")) == me else name_of(author, obj(before.get("member")))
    said = readable(text(before.get("content")), before, me=me, roles=roles)
    lines = [*_stickers(before), *_poll(before), *_activity(before), *_recorded(before)]
    files = [format_item("file", one.get("filename")) for one in objs(before.get("attachments"))]
    passed_on = [
        f"> {line}"
        for snapshot in objs(before.get("message_snapshots"))
        for line in text(obj(snapshot.get("message")).get("content")).splitlines()
    ]
    embeds = [one.text for one in _embeds(before)]
    whole = "\n".join(filter(None, [said, *lines, *files, *passed_on, *embeds]))
    yield quote_reply(name, whole or format_item("a message that cannot be seen"))


def _embeds(message: Json) -> Iterator[Quoted]:
    """Previews of links, as Discord or other programs made them."""
    for embed in objs(message.get("embeds")):
        author, footer = obj(embed.get("author")), obj(embed.get("footer"))
        fields = [f"{one.get('name')}: {one.get('value')}" for one in objs(embed.get("fields"))]
        told = [
            text(author.get("name")),
            text(embed.get("title")),
            text(embed.get("url")),
            text(embed.get("description")),
            *fields,
            text(footer.get("text")),
        ]
        yield Quoted(source="Preview of a link", text="\n".join(filter(None, told)))


def _stickers(message: Json) -> list[str]:
    found = objs(message.get("sticker_items")) or objs(message.get("stickers"))
    return [format_item("sticker", one.get("name")) for one in found]


def _poll(message: Json) -> list[str]:
    poll = obj(message.get("poll"))
    if not poll:
        return []
    answers = " / ".join(_answer(obj(one.get("poll_media"))) for one in objs(poll.get("answers")))
    return [format_titled_item("poll", obj(poll.get("question")).get("text"), answers)]


def _answer(media: Json) -> str:
    emoji = text(obj(media.get("emoji")).get("name"))
    return " ".join(filter(None, [emoji, text(media.get("text"))]))


def _activity(message: Json) -> list[str]:
    if not (message.get("activity") or message.get("application")):
        return []
    return [format_titled_item("invitation", obj(message.get("application")).get("name"))]


def _recorded(message: Json) -> list[str]:
    voice = int(message.get("flags") or 0) & _VOICE
    recorded = [one for one in objs(message.get("attachments")) if one.get("duration_secs")]
    if voice:
        return [format_recording("voice message", one.get("duration_secs")) for one in recorded]
    return []


def _components(components: list[Json], depth: int) -> Iterator[str]:
    """What components show; what nobody can read here is named by its kind."""
    if depth > _DEEPEST:
        yield "…"
        return
    for one in components:
        kind = one.get("type")
        if kind in (_ROW, _SECTION, _BOX):
            yield from _components(objs(one.get("components")), depth + 1)
            yield from _components(
                [obj(one["accessory"])] if one.get("accessory") else [], depth + 1
            )
        elif kind != _LINE:
            yield _component(one)


def _component(one: Json) -> str:
    kind = one.get("type")
    if kind == _TEXT:
        return text(one.get("content"))
    if kind == _BUTTON:
        return format_item(
            "button", one.get("label") or obj(one.get("emoji")).get("name"), one.get("url")
        )
    if kind in _CHOICES:
        listed = " / ".join(text(each.get("label")) for each in objs(one.get("options")))
        return format_titled_item("choice", one.get("placeholder"), listed)
    if kind == _GALLERY:
        items = objs(one.get("items"))
        return format_titled_item(
            "pictures", " / ".join(text(each.get("description")) for each in items)
        )
    if kind == _THUMBNAIL:
        return format_titled_item("picture", one.get("description"))
    if kind == _FILE:
        return format_item("file", one.get("name") or obj(one.get("file")).get("url"))
    return format_item(f"unsupported: component {kind}")


def _file(place: Json, attachment: Json) -> IncomingFile:
    size = attachment.get("size")
    return IncomingFile(
        # Its address is good for a day: it is asked for when the file is fetched.
        id=f"{place['channel_id']}/{place['id']}/{attachment['id']}",
        name=text(attachment.get("filename")) or "file",
        media_type=(text(attachment.get("content_type")) or "application/octet-stream").partition(
            ";"
        )[0],
        size=size if isinstance(size, int) else None,
    )
