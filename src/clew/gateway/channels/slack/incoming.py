"""Content of a Slack message as text: its text, blocks, shared messages, files; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.core.channel_events import IncomingFile
from clew.core.payload import Json, as_list, as_object, as_objects, as_text
from clew.core.quotation import (
    Quoted,
    clean_name,
    format_item,
    format_recording,
    format_titled_item,
    quote_forwarded,
)
from clew.gateway.channels.slack.messages import unescape_mrkdwn
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REFERENCE = re.compile(r"<([^<>]*)>")
#: Maximum depth of nested blocks.
_MAX_DEPTH = 12
#: Fields of blocks that contain text.
_TEXT_FIELDS = ("text", "title", "alt_text", "description", "label", "placeholder")


class SlackContent(Record):
    """The content of a message besides its text."""

    #: The text of its blocks, if it has no other text.
    text: str = ""
    lines: tuple[str, ...] = ()
    quoted: tuple[Quoted, ...] = ()
    files: tuple[IncomingFile, ...] = ()


def read_content(message: Json, *, me: str) -> SlackContent:
    """Return the content of a message; ``read_text`` reads its own text."""
    raw = as_text(message.get("text"))
    blocks = as_objects(message.get("blocks"))
    # The text is what the sender wrote; the other blocks hold what text cannot express.
    others = [one for one in blocks if one.get("type") != "rich_text"] if raw else blocks
    shown = read_text(raw, me)
    extra = [told for told in read_blocks(others, me=me) if told not in shown]
    files, lines = _read_files(as_objects(message.get("files")))
    quoted: list[Quoted] = []
    for attachment in as_objects(message.get("attachments")):
        inner, more = _read_files(as_objects(attachment.get("files")))
        files += inner
        quoted.append(_read_attachment(attachment, more, me=me))
    room = as_object(message.get("room"))
    if room:
        lines.append(format_titled_item("huddle", room.get("name")))
    return SlackContent(
        text="" if raw else "\n".join(extra),
        lines=(*(extra if raw else ()), *lines),
        quoted=tuple(quoted),
        files=tuple(files),
    )


def _read_attachment(attachment: Json, lines: list[str], *, me: str) -> Quoted:
    """Return a shared message or link preview as a quotation."""
    told = "\n".join([*_read_attachment_text(attachment, me=me), *lines])
    author = attachment.get("author_name") or attachment.get("author_subname")
    if attachment.get("is_share") or attachment.get("is_msg_unfurl"):
        return quote_forwarded(author or attachment.get("author_id"), told)
    service = clean_name(attachment.get("service_name") or author or attachment.get("from_url"))
    return Quoted(source=f"Preview of a link, {service}" if service else "Attached", text=told)


def _read_attachment_text(attachment: Json, *, me: str) -> list[str]:
    blocks = as_objects(attachment.get("blocks"))
    for inner in as_objects(attachment.get("message_blocks")):
        blocks += as_objects(as_object(inner.get("message")).get("blocks"))
    fields = [
        f"{one.get('title', '')}: {one.get('value', '')}"
        for one in as_objects(attachment.get("fields"))
    ]
    told = [
        read_text(as_text(attachment.get(key)), me)
        for key in ("pretext", "title", "title_link", "text")
        if attachment.get(key)
    ]
    if not attachment.get("text"):
        told += read_blocks(blocks, me=me)
    told += [read_text(each, me) for each in fields]
    if attachment.get("image_url"):
        told.append(format_titled_item("picture", attachment.get("image_url")))
    return told or [read_text(as_text(attachment.get("fallback")), me)]


def _read_files(files: list[Json]) -> tuple[list[IncomingFile], list[str]]:
    """Return the files that can be fetched, and lines that describe the others."""
    found: list[IncomingFile] = []
    lines: list[str] = []
    for one in files:
        name = as_text(one.get("name")) or as_text(one.get("title")) or "file"
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
            lines.append(_describe_clip(one))
        found.append(_parse_file(one, name))
    return found, lines


def _describe_clip(file: Json) -> str:
    took = file.get("duration_ms")
    seconds = took / 1000 if isinstance(took, (int, float)) else None
    what = "voice message" if file.get("subtype") == "slack_audio" else "video message"
    return format_recording(what, seconds)


def _parse_file(file: Json, name: str) -> IncomingFile:
    size = file.get("size")
    return IncomingFile(
        id=as_text(file["id"]),
        name=name,
        media_type=as_text(file.get("mimetype")) or "application/octet-stream",
        size=size if isinstance(size, int) else None,
    )


# Blocks


def read_blocks(blocks: list[Json], *, me: str) -> list[str]:
    """Return the text of each block; unknown blocks are named."""
    return list(filter(None, (_read_block(one, me, 0) for one in blocks)))


def _read_block(block: Json, me: str, depth: int) -> str:
    kind = as_text(block.get("type"))
    match kind:
        case "divider":
            return "---"
        case "rich_text":
            return "\n".join(_read_rich(as_objects(block.get("elements")), me, depth))
        case "table":
            rows = [
                " | ".join(_read_cell(as_object(cell), me) for cell in as_list(row))
                for row in as_list(block.get("rows"))
            ]
            return "\n".join(rows)
        case "image" | "video":
            return format_titled_item(
                kind, _read_text_fields(block, me), block.get("image_url") or block.get("video_url")
            )
        case "file" | "call":
            return format_item(kind, block.get("external_id") or block.get("call_id"))
        case _:
            return _read_text_fields(block, me, depth) or format_item(f"unsupported: block {kind}")


def _read_cell(cell: Json, me: str) -> str:
    if cell.get("type") == "rich_text":
        return " ".join(_read_rich(as_objects(cell.get("elements")), me, 1))
    return read_text(as_text(cell.get("text")), me)


def _read_text_fields(block: Json, me: str, depth: int = 0) -> str:
    """Return the text of well-known fields, at any depth."""
    if depth > _MAX_DEPTH:
        return "…"
    inner = [as_object(block.get(key)) for key in (*_TEXT_FIELDS, "accessory")]
    found = [read_text(as_text(block.get(key)), me) for key in _TEXT_FIELDS]
    found += [_read_text_fields(one, me, depth + 1) for one in inner if one]
    for key in ("fields", "elements", "options"):
        found += [_read_text_fields(one, me, depth + 1) for one in as_objects(block.get(key))]
    return "\n".join(filter(None, found))


def _read_rich(elements: list[Json], me: str, depth: int) -> Iterator[str]:
    for one in elements:
        yield _read_rich_element(one, me, depth)


def _read_rich_element(one: Json, me: str, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return "…"
    inner = as_objects(one.get("elements"))
    match one.get("type"):
        case "rich_text_section" | "rich_text_preformatted":
            return "".join(_read_rich_inline(each, me) for each in inner)
        case "rich_text_quote":
            said_ = "".join(_read_rich_inline(each, me) for each in inner)
            return "\n".join(f"> {line}" for line in said_.splitlines())
        case "rich_text_list":
            return "\n".join(f"- {item}" for item in _read_rich(inner, me, depth + 1))
        case kind:
            return _read_rich_inline(one, me) or format_item(f"unsupported: {as_text(kind)}")


def _read_rich_inline(one: Json, me: str) -> str:
    match one.get("type"):
        case "link":
            url, label = as_text(one.get("url")), as_text(one.get("text"))
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
            return as_text(one.get("fallback")) or as_text(one.get("timestamp"))
        case "color":
            return as_text(one.get("value"))
        case _:
            return as_text(one.get("text"))


# Text


def read_text(raw: str, me: str) -> str:
    """Return a text as people read it."""
    return unescape_mrkdwn(
        _REFERENCE.sub(lambda found: _resolve_reference(found[1], me), raw)
    ).strip()


def _resolve_reference(inner: str, me: str) -> str:
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


def find_groups(message: Mapping[str, object]) -> frozenset[str]:
    """Return the user groups that a message mentions."""
    found = set(re.findall(r"<!subteam\^(\w+)[|>]", as_text(message.get("text"))))
    for block in as_objects(message.get("blocks")):
        found |= set(_iter_groups(block, 0))
    return frozenset(found)


def _iter_groups(element: Json, depth: int) -> Iterator[str]:
    if element.get("type") == "usergroup":
        yield as_text(element.get("usergroup_id"))
    if depth <= _MAX_DEPTH:
        for inner in as_objects(element.get("elements")):
            yield from _iter_groups(inner, depth + 1)
