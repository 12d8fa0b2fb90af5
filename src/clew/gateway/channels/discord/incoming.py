"""Content of a Discord message as text: its own text, and a line per other part; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.core.channel_events import IncomingFile
from clew.core.payload import Json, as_object, as_objects, as_text
from clew.core.quotation import (
    AGENT,
    Quoted,
    format_item,
    format_recording,
    format_titled_item,
    quote_forwarded,
    quote_reply,
)
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REFERENCE = re.compile(r"<(?:(@!?|@&|#)(\d+)|a?(:\w+:)\d+|/([^:<>]+):\d+)>")
_VOICE_FLAG = 1 << 13
#: The type of a message reference that marks a forward.
_FORWARD_REFERENCE = 1
#: Maximum depth of nested components and messages.
_MAX_DEPTH = 6

#: Kinds of components: containers, and those with text.
_ROW, _BUTTON, _SECTION, _TEXT, _THUMBNAIL, _GALLERY, _FILE, _LINE, _BOX = (
    1, 2, 9, 10, 11, 12, 13, 14, 17,
)  # fmt: skip
_SELECT_MENUS = (3, 5, 6, 7, 8)


class DiscordContent(Record):
    """The content of a message."""

    text: str = ""
    lines: tuple[str, ...] = ()
    quoted: tuple[Quoted, ...] = ()
    files: tuple[IncomingFile, ...] = ()
    unsupported: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.lines or self.quoted or self.files or self.unsupported)


def get_display_name(user: Json, member: Json | None = None) -> str:
    """Return the name of a user as shown in the chat."""
    found = (member or {}).get("nick") or user.get("global_name") or user.get("username")
    return as_text(found)


def resolve_mentions(content: str, message: Json, *, me: str, roles: frozenset[str]) -> str:
    """Return the text with names in place of ids."""
    mentioned = as_objects(message.get("mentions"))
    names = {
        str(one.get("id")): get_display_name(one, as_object(one.get("member"))) for one in mentioned
    }
    names[me] = "you"
    names |= dict.fromkeys(roles, "you")
    names |= {
        str(one.get("id")): as_text(one.get("name"))
        for one in as_objects(message.get("mention_channels"))
    }
    return _REFERENCE.sub(lambda found: _resolve_reference(found, names), content).strip()


def _resolve_reference(found: re.Match[str], names: Mapping[str, str]) -> str:
    sign, id_, emoji, command = found.groups()
    if sign is None:
        return emoji or f"/{command}"
    return f"{sign[0]}{names.get(id_) or id_}"


def read_content(message: Json, place: Json, *, me: str, roles: frozenset[str]) -> DiscordContent:
    """
    Return the content of a message, including its own text.

    ``place`` is the message under which its files are found: for a forwarded message, the
    one that forwarded it.
    """
    return _read_nested(message, place, me=me, roles=roles, depth=0)


def _read_nested(
    message: Json, place: Json, *, me: str, roles: frozenset[str], depth: int
) -> DiscordContent:
    lines = [
        *_describe_stickers(message),
        *_describe_poll(message),
        *_describe_activity(message),
        *_describe_recordings(message),
    ]
    files = [
        _parse_file(place, one) for one in as_objects(message.get("attachments")) if one.get("id")
    ]
    quoted = [*_read_reply(message, me=me, roles=roles), *_read_embeds(message)]
    found = DiscordContent(
        text=resolve_mentions(as_text(message.get("content")), message, me=me, roles=roles),
        lines=tuple(lines),
        files=tuple(files),
        quoted=tuple(quoted),
    )
    if parts := "\n".join(_describe_components(as_objects(message.get("components")), 0)):
        found = replace(found, quoted=(*found.quoted, Quoted(source="Components", text=parts)))
    return _add_forwards(found, message, place, me=me, roles=roles, depth=depth)


def _add_forwards(
    found: DiscordContent, message: Json, place: Json, *, me: str, roles: frozenset[str], depth: int
) -> DiscordContent:
    """Add forwarded messages; Discord does not reveal their authors."""
    for snapshot in as_objects(message.get("message_snapshots")):
        if depth >= _MAX_DEPTH:
            return replace(found, quoted=(*found.quoted, quote_forwarded("", "…")))
        told = as_object(snapshot.get("message"))
        inner = _read_nested(told, place, me=me, roles=roles, depth=depth + 1)
        found = replace(
            found,
            files=(*found.files, *inner.files),
            quoted=(
                *found.quoted,
                quote_forwarded("", _describe_forward(inner, told)),
                *inner.quoted,
            ),
        )
    return found


def _describe_forward(content: DiscordContent, message: Json) -> str:
    files = [
        format_item("file", one.get("filename")) for one in as_objects(message.get("attachments"))
    ]
    return "\n".join(filter(None, [content.text, *content.lines, *files]))


def _read_reply(message: Json, *, me: str, roles: frozenset[str]) -> Iterator[Quoted]:
    reference = as_object(message.get("message_reference"))
    if not reference or reference.get("type") == _FORWARD_REFERENCE:
        return
    before = as_object(message.get("referenced_message"))
    if not before:
        if "referenced_message" in message:
            yield Quoted(source="In reply to a message that is deleted")
        return
    author = as_object(before.get("author"))
    name = (
        AGENT
        if str(author.get("id")) == me
        else get_display_name(author, as_object(before.get("member")))
    )
    said = resolve_mentions(as_text(before.get("content")), before, me=me, roles=roles)
    lines = [
        *_describe_stickers(before),
        *_describe_poll(before),
        *_describe_activity(before),
        *_describe_recordings(before),
    ]
    files = [
        format_item("file", one.get("filename")) for one in as_objects(before.get("attachments"))
    ]
    passed_on = [
        f"> {line}"
        for snapshot in as_objects(before.get("message_snapshots"))
        for line in as_text(as_object(snapshot.get("message")).get("content")).splitlines()
    ]
    embeds = [one.text for one in _read_embeds(before)]
    whole = "\n".join(filter(None, [said, *lines, *files, *passed_on, *embeds]))
    yield quote_reply(name, whole or format_item("a message that cannot be seen"))


def _read_embeds(message: Json) -> Iterator[Quoted]:
    """Yield link previews, as Discord or other programs created them."""
    for embed in as_objects(message.get("embeds")):
        author, footer = as_object(embed.get("author")), as_object(embed.get("footer"))
        fields = [
            f"{one.get('name')}: {one.get('value')}" for one in as_objects(embed.get("fields"))
        ]
        told = [
            as_text(author.get("name")),
            as_text(embed.get("title")),
            as_text(embed.get("url")),
            as_text(embed.get("description")),
            *fields,
            as_text(footer.get("text")),
        ]
        yield Quoted(source="Preview of a link", text="\n".join(filter(None, told)))


def _describe_stickers(message: Json) -> list[str]:
    found = as_objects(message.get("sticker_items")) or as_objects(message.get("stickers"))
    return [format_item("sticker", one.get("name")) for one in found]


def _describe_poll(message: Json) -> list[str]:
    poll = as_object(message.get("poll"))
    if not poll:
        return []
    answers = " / ".join(
        _format_choice(as_object(one.get("poll_media"))) for one in as_objects(poll.get("answers"))
    )
    return [format_titled_item("poll", as_object(poll.get("question")).get("text"), answers)]


def _format_choice(media: Json) -> str:
    emoji = as_text(as_object(media.get("emoji")).get("name"))
    return " ".join(filter(None, [emoji, as_text(media.get("text"))]))


def _describe_activity(message: Json) -> list[str]:
    if not (message.get("activity") or message.get("application")):
        return []
    return [format_titled_item("invitation", as_object(message.get("application")).get("name"))]


def _describe_recordings(message: Json) -> list[str]:
    voice = int(message.get("flags") or 0) & _VOICE_FLAG
    recorded = [one for one in as_objects(message.get("attachments")) if one.get("duration_secs")]
    if voice:
        return [format_recording("voice message", one.get("duration_secs")) for one in recorded]
    return []


def _describe_components(components: list[Json], depth: int) -> Iterator[str]:
    """Yield the text of components; a component without text is named by its kind."""
    if depth > _MAX_DEPTH:
        yield "…"
        return
    for one in components:
        kind = one.get("type")
        if kind in (_ROW, _SECTION, _BOX):
            yield from _describe_components(as_objects(one.get("components")), depth + 1)
            yield from _describe_components(
                [as_object(one["accessory"])] if one.get("accessory") else [], depth + 1
            )
        elif kind != _LINE:
            yield _describe_component(one)


def _describe_component(one: Json) -> str:
    kind = one.get("type")
    if kind == _TEXT:
        return as_text(one.get("content"))
    if kind == _BUTTON:
        return format_item(
            "button", one.get("label") or as_object(one.get("emoji")).get("name"), one.get("url")
        )
    if kind in _SELECT_MENUS:
        listed = " / ".join(as_text(each.get("label")) for each in as_objects(one.get("options")))
        return format_titled_item("choice", one.get("placeholder"), listed)
    if kind == _GALLERY:
        items = as_objects(one.get("items"))
        return format_titled_item(
            "pictures", " / ".join(as_text(each.get("description")) for each in items)
        )
    if kind == _THUMBNAIL:
        return format_titled_item("picture", one.get("description"))
    if kind == _FILE:
        return format_item("file", one.get("name") or as_object(one.get("file")).get("url"))
    return format_item(f"unsupported: component {kind}")


def _parse_file(place: Json, attachment: Json) -> IncomingFile:
    size = attachment.get("size")
    return IncomingFile(
        # Its URL is valid for a day: it is looked up when the file is fetched.
        id=f"{place['channel_id']}/{place['id']}/{attachment['id']}",
        name=as_text(attachment.get("filename")) or "file",
        media_type=(
            as_text(attachment.get("content_type")) or "application/octet-stream"
        ).partition(";")[0],
        size=size if isinstance(size, int) else None,
    )
