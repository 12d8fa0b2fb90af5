"""What a message of Slack holds, in words: its text, blocks, shared messages, files; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.chat import IncomingFile
from clew.core.quotation import (
    Quoted,
    clean_name,
    format_item,
    format_recording,
    format_titled_item,
    quote_forwarded,
)
from clew.gateway.channels.slack.messages import unescape
from clew.gateway.payload import Json, each, obj, objs, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REFERENCE = re.compile(r"<([^<>]*)>")
#: Blocks within blocks are read so deep.
_DEEPEST = 12
#: Blocks that hold text in one field, or in a list of such fields.
_TEXTS = ("text", "title", "alt_text", "description", "label", "placeholder")


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What came with a message besides its text."""

    #: The text of its blocks, where it has no other.
    text: str = ""
    lines: tuple[str, ...] = ()
    quoted: tuple[Quoted, ...] = ()
    files: tuple[IncomingFile, ...] = ()


def content_of(message: Json, *, me: str) -> Content:
    """What a message holds; its own text is read by ``said``."""
    raw = text(message.get("text"))
    blocks = objs(message.get("blocks"))
    # The text says what the sender wrote; blocks besides are what no text can say.
    others = [one for one in blocks if one.get("type") != "rich_text"] if raw else blocks
    shown = said(raw, me)
    extra = [told for told in blocks_text(others, me=me) if told not in shown]
    files, lines = _files(objs(message.get("files")))
    quoted: list[Quoted] = []
    for attachment in objs(message.get("attachments")):
        inner, more = _files(objs(attachment.get("files")))
        files += inner
        quoted.append(_attached(attachment, more, me=me))
    room = obj(message.get("room"))
    if room:
        lines.append(format_titled_item("huddle", room.get("name")))
    return Content(
        text="" if raw else "\n".join(extra),
        lines=(*(extra if raw else ()), *lines),
        quoted=tuple(quoted),
        files=tuple(files),
    )


def _attached(attachment: Json, lines: list[str], *, me: str) -> Quoted:
    """A message that was shared, or the preview of a link."""
    told = "\n".join([*_attached_text(attachment, me=me), *lines])
    author = attachment.get("author_name") or attachment.get("author_subname")
    if attachment.get("is_share") or attachment.get("is_msg_unfurl"):
        return quote_forwarded(author or attachment.get("author_id"), told)
    service = clean_name(attachment.get("service_name") or author or attachment.get("from_url"))
    return Quoted(source=f"Preview of a link, {service}" if service else "Attached", text=told)


def _attached_text(attachment: Json, *, me: str) -> list[str]:
    blocks = objs(attachment.get("blocks"))
    for inner in objs(attachment.get("message_blocks")):
        blocks += objs(obj(inner.get("message")).get("blocks"))
    fields = [
        f"{one.get('title', '')}: {one.get('value', '')}" for one in objs(attachment.get("fields"))
    ]
    told = [
        said(text(attachment.get(key)), me)
        for key in ("pretext", "title", "title_link", "text")
        if attachment.get(key)
    ]
    if not attachment.get("text"):
        told += blocks_text(blocks, me=me)
    told += [said(each, me) for each in fields]
    if attachment.get("image_url"):
        told.append(format_titled_item("picture", attachment.get("image_url")))
    return told or [said(text(attachment.get("fallback")), me)]


def _files(files: list[Json]) -> tuple[list[IncomingFile], list[str]]:
    """The files that can be fetched, and a line for what else is to be said of them."""
    found: list[IncomingFile] = []
    lines: list[str] = []
    for one in files:
        name = text(one.get("name")) or text(one.get("title")) or "file"
        if "id" not in one or one.get("mode") in ("tombstone", "hidden_by_limit"):
            lines.append(format_item("a file that is not available", name if "id" in one else ""))
            continue
        if one.get("mode") == "external":
            lines.append(
                format_titled_item(
                    "external file", name, one.get("external_url") or one.get("url_private")
                )
            )
            continue
        if one.get("subtype") in ("slack_audio", "slack_video"):
            lines.append(_clip(one))
        found.append(_file(one, name))
    return found, lines


def _clip(file: Json) -> str:
    took = file.get("duration_ms")
    seconds = took / 1000 if isinstance(took, (int, float)) else None
    what = "voice message" if file.get("subtype") == "slack_audio" else "video message"
    return format_recording(what, seconds)


def _file(file: Json, name: str) -> IncomingFile:
    size = file.get("size")
    return IncomingFile(
        id=text(file["id"]),
        name=name,
        media_type=text(file.get("mimetype")) or "application/octet-stream",
        size=size if isinstance(size, int) else None,
    )


# Blocks


def blocks_text(blocks: list[Json], *, me: str) -> list[str]:
    """What blocks show, one after the other; unknown ones are named."""
    return list(filter(None, (_block(one, me, 0) for one in blocks)))


def _block(block: Json, me: str, depth: int) -> str:
    kind = text(block.get("type"))
    match kind:
        case "divider":
            return "---"
        case "rich_text":
            return "\n".join(_rich(objs(block.get("elements")), me, depth))
        case "table":
            rows = [
                " | ".join(_cell(obj(cell), me) for cell in each(row))
                for row in each(block.get("rows"))
            ]
            return "\n".join(rows)
        case "image" | "video":
            return format_titled_item(
                kind, _plain(block, me), block.get("image_url") or block.get("video_url")
            )
        case "file" | "call":
            return format_item(kind, block.get("external_id") or block.get("call_id"))
        case _:
            return _plain(block, me, depth) or format_item(f"unsupported: block {kind}")


def _cell(cell: Json, me: str) -> str:
    if cell.get("type") == "rich_text":
        return " ".join(_rich(objs(cell.get("elements")), me, 1))
    return said(text(cell.get("text")), me)


def _plain(block: Json, me: str, depth: int = 0) -> str:
    """The text of what has it in well-known fields, at any depth."""
    if depth > _DEEPEST:
        return "…"
    inner = [obj(block.get(key)) for key in (*_TEXTS, "accessory")]
    found = [said(text(block.get(key)), me) for key in _TEXTS]
    found += [_plain(one, me, depth + 1) for one in inner if one]
    for key in ("fields", "elements", "options"):
        found += [_plain(one, me, depth + 1) for one in objs(block.get(key))]
    return "\n".join(filter(None, found))


def _rich(elements: list[Json], me: str, depth: int) -> Iterator[str]:
    for one in elements:
        yield _rich_element(one, me, depth)


def _rich_element(one: Json, me: str, depth: int) -> str:
    if depth > _DEEPEST:
        return "…"
    inner = objs(one.get("elements"))
    match one.get("type"):
        case "rich_text_section" | "rich_text_preformatted":
            return "".join(_rich_inline(each, me) for each in inner)
        case "rich_text_quote":
            said_ = "".join(_rich_inline(each, me) for each in inner)
            return "\n".join(f"> {line}" for line in said_.splitlines())
        case "rich_text_list":
            return "\n".join(f"- {item}" for item in _rich(inner, me, depth + 1))
        case kind:
            return _rich_inline(one, me) or format_item(f"unsupported: {text(kind)}")


def _rich_inline(one: Json, me: str) -> str:
    match one.get("type"):
        case "link":
            url, label = text(one.get("url")), text(one.get("text"))
            return f"{label} ({url})" if label and label != url else url
        case "user":
            return "@you" if one.get("user_id") == me else f"@{one.get('user_id')}"
        case "usergroup":
            return f"@{one.get('usergroup_id')}"
        case "channel":
            return f"#{one.get('channel_id')}"
        case "broadcast":
            return f"@{one.get('range')}"
        case "emoji":
            return f":{one.get('name')}:"
        case "date":
            return text(one.get("fallback")) or text(one.get("timestamp"))
        case "color":
            return text(one.get("value"))
        case _:
            return text(one.get("text"))


# Text


def said(raw: str, me: str) -> str:
    """Text as people read it."""
    return unescape(_REFERENCE.sub(lambda found: _referred(found[1], me), raw)).strip()


def _referred(inner: str, me: str) -> str:
    target, _, label = inner.partition("|")
    if target.startswith(("@", "#")):
        if label:
            return f"{target[0]}{label}"
        return "@you" if target == f"@{me}" else target
    if target.startswith("!"):
        return label or f"@{target[1:].partition('^')[0]}"
    if label and label != target and label not in target:
        return f"{label} ({target})"
    return target.removeprefix("mailto:") if label else target


def groups_named(message: Mapping[str, object]) -> frozenset[str]:
    """The user groups that a message mentions."""
    found = set(re.findall(r"<!subteam\^(\w+)[|>]", text(message.get("text"))))
    for block in objs(message.get("blocks")):
        found |= set(_groups(block, 0))
    return frozenset(found)


def _groups(element: Json, depth: int) -> Iterator[str]:
    if element.get("type") == "usergroup":
        yield text(element.get("usergroup_id"))
    if depth <= _DEEPEST:
        for inner in objs(element.get("elements")):
            yield from _groups(inner, depth + 1)
