"""Telegram's rich messages in words: blocks of text, lists, tables, pictures; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from clew.core.chat import IncomingFile
from clew.core.quotation import format_item
from clew.gateway.payload import Json, obj, objs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Blocks within blocks are read so deep.
_DEEPEST = 24
#: The blocks that hold a file: where it is, and as what it counts.
_FILES: Mapping[str, tuple[str, str, str]] = {
    "animation": ("animation", "animation.mp4", "video/mp4"),
    "audio": ("audio", "audio.mp3", "audio/mpeg"),
    "video": ("video", "video.mp4", "video/mp4"),
    "voice_note": ("voice message", "voice.ogg", "audio/ogg"),
    "document": ("file", "file", "application/octet-stream"),
}


def rich_text(message: Json) -> str:
    """The text of a rich message, one block after the other."""
    return _blocks(message.get("blocks"), 0)


def rich_files(message: Json) -> tuple[IncomingFile, ...]:
    """The files of its blocks, in order."""
    return tuple(_files(message.get("blocks"), 0))


def _inline(text: object, depth: int = 0) -> str:
    """Formatted text without its formats."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(text, str):
        return text
    if isinstance(text, list):
        return "".join(_inline(each, depth + 1) for each in cast("list[object]", text))
    told = obj(text)
    return _formatted(told, depth) if told else ""


def _formatted(told: Json, depth: int) -> str:
    inner = _inline(told.get("text"), depth + 1)
    kind = told.get("type")
    if kind == "url" and told.get("url") not in (None, inner):
        return f"{inner} ({told['url']})"
    return inner or str(told.get("alternative_text") or told.get("expression") or "")


def _blocks(blocks: object, depth: int) -> str:
    if depth > _DEEPEST:
        return "…"
    return "\n\n".join(filter(None, (_block(each, depth + 1) for each in objs(blocks))))


def _block(block: Json, depth: int) -> str:
    kind = str(block.get("type"))
    match kind:
        case "divider":
            return "---"
        case "anchor" | "thinking":
            return _inline(block.get("text"))
        case "heading":
            return f"{'#' * int(block.get('size') or 1)} {_inline(block.get('text'))}"
        case "mathematical_expression":
            return str(block.get("expression") or "")
        case "list":
            return "\n".join(_item(each, depth) for each in objs(block.get("items")))
        case "table":
            return _table(block)
        case "map":
            place = obj(block.get("location"))
            where = f"{place.get('latitude')}, {place.get('longitude')}"
            return _captioned(format_item("location", where), block)
        case _:
            return _other(kind, block, depth)


def _other(kind: str, block: Json, depth: int) -> str:
    if kind == "photo" or kind in _FILES:
        return _captioned(format_item(_FILES[kind][0] if kind in _FILES else "photo"), block)
    text = _inline(block.get("summary") or block.get("text"))
    inner = _blocks(block.get("blocks"), depth)
    if kind in ("blockquote", "pullquote", "expandable_blockquote"):
        said = "\n".join(filter(None, [text, inner, _inline(block.get("credit"))]))
        return "\n".join(f"> {line}" for line in said.splitlines())
    found = "\n\n".join(filter(None, [text, inner]))
    return _captioned(found, block) or format_item(f"unsupported: {kind}")


def _captioned(what: str, block: Json) -> str:
    caption = block.get("caption")
    told = obj(caption) or {"text": caption}
    credit = _inline(told.get("credit"))
    return "\n".join(filter(None, [what, _inline(told.get("text")), credit]))


def _item(item: Json, depth: int) -> str:
    box = ""
    if item.get("has_checkbox"):
        box = "[x] " if item.get("is_checked") else "[ ] "
    return f"{item.get('label') or '-'} {box}{_blocks(item.get('blocks'), depth)}"


def _table(block: Json) -> str:
    rows: list[object] = block.get("cells") or []
    lines = [" | ".join(_inline(cell.get("text")) for cell in objs(row)) for row in rows]
    return "\n".join(filter(None, [_inline(block.get("caption")), *lines]))


def _files(blocks: object, depth: int) -> Iterator[IncomingFile]:
    for block in objs(blocks) if depth <= _DEEPEST else ():
        kind = str(block.get("type"))
        if kind == "photo" and (sizes := objs(block.get("photo"))):
            largest = max(sizes, key=lambda size: size.get("width", 0))
            yield _file(largest, "photo.jpg", "image/jpeg")
        elif kind in _FILES and (media := obj(block.get(kind))):
            yield _file(media, *_FILES[kind][1:])
        yield from _files(block.get("blocks"), depth + 1)
        for item in objs(block.get("items")):
            yield from _files(item.get("blocks"), depth + 1)


def _file(media: Json, name: str, media_type: str) -> IncomingFile:
    return IncomingFile(
        id=media["file_id"],
        name=media.get("file_name") or name,
        media_type=media.get("mime_type") or media_type,
        size=media.get("file_size"),
    )
