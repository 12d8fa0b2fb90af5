"""Rich messages of Telegram as text: blocks, lists, tables, pictures; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from clew.core.payload import Json, as_object, as_objects
from clew.core.quotation import format_item
from clew.gateway.channels.telegram.files import parse_file, parse_photo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clew.core.channel_events import IncomingFile

#: Maximum depth of nested blocks.
_MAX_DEPTH = 24
#: Blocks with a file: its label, default name and media type.
_FILE_BLOCKS: Mapping[str, tuple[str, str, str]] = {
    "animation": ("animation", "animation.mp4", "video/mp4"),
    "audio": ("audio", "audio.mp3", "audio/mpeg"),
    "video": ("video", "video.mp4", "video/mp4"),
    "voice_note": ("voice message", "voice.ogg", "audio/ogg"),
    "document": ("file", "file", "application/octet-stream"),
}


def read_rich_text(message: Json) -> str:
    """Return the text of a rich message, block by block."""
    return _read_blocks(message.get("blocks"), 0)


def read_rich_files(message: Json) -> tuple[IncomingFile, ...]:
    """Return the files of a rich message's blocks, in order."""
    return tuple(_iter_files(message.get("blocks"), 0))


def _read_inline(text: object, depth: int = 0) -> str:
    """Return formatted text without its formatting."""
    if depth > _MAX_DEPTH:
        return "…"
    if isinstance(text, str):
        return text
    if isinstance(text, list):
        return "".join(_read_inline(each, depth + 1) for each in cast("list[object]", text))
    told = as_object(text)
    return _read_formatted(told, depth) if told else ""


def _read_formatted(told: Json, depth: int) -> str:
    inner = _read_inline(told.get("text"), depth + 1)
    kind = told.get("type")
    if kind == "url" and told.get("url") not in (None, inner):
        return f"{inner} ({told['url']})"
    return inner or str(told.get("alternative_text") or told.get("expression") or "")


def _read_blocks(blocks: object, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return "…"
    return "\n\n".join(filter(None, (_read_block(each, depth + 1) for each in as_objects(blocks))))


def _read_block(block: Json, depth: int) -> str:
    kind = str(block.get("type"))
    match kind:
        case "divider":
            return "---"
        case "anchor" | "thinking":
            return _read_inline(block.get("text"))
        case "heading":
            return f"{'#' * int(block.get('size') or 1)} {_read_inline(block.get('text'))}"
        case "mathematical_expression":
            return str(block.get("expression") or "")
        case "list":
            return "\n".join(_read_item(each, depth) for each in as_objects(block.get("items")))
        case "table":
            return _read_table(block)
        case "map":
            place = as_object(block.get("location"))
            where = f"{place.get('latitude')}, {place.get('longitude')}"
            return _add_caption(format_item("location", where), block)
        case _:
            return _read_other_block(kind, block, depth)


def _read_other_block(kind: str, block: Json, depth: int) -> str:
    if kind == "photo" or kind in _FILE_BLOCKS:
        return _add_caption(
            format_item(_FILE_BLOCKS[kind][0] if kind in _FILE_BLOCKS else "photo"), block
        )
    text = _read_inline(block.get("summary") or block.get("text"))
    inner = _read_blocks(block.get("blocks"), depth)
    if kind in ("blockquote", "pullquote", "expandable_blockquote"):
        said = "\n".join(filter(None, [text, inner, _read_inline(block.get("credit"))]))
        return "\n".join(f"> {line}" for line in said.splitlines())
    found = "\n\n".join(filter(None, [text, inner]))
    return _add_caption(found, block) or format_item(f"unsupported: {kind}")


def _add_caption(what: str, block: Json) -> str:
    caption = block.get("caption")
    told = as_object(caption) or {"text": caption}
    credit = _read_inline(told.get("credit"))
    return "\n".join(filter(None, [what, _read_inline(told.get("text")), credit]))


def _read_item(item: Json, depth: int) -> str:
    box = ""
    if item.get("has_checkbox"):
        box = "[x] " if item.get("is_checked") else "[ ] "
    return f"{item.get('label') or '-'} {box}{_read_blocks(item.get('blocks'), depth)}"


def _read_table(block: Json) -> str:
    rows: list[object] = block.get("cells") or []
    lines = [" | ".join(_read_inline(cell.get("text")) for cell in as_objects(row)) for row in rows]
    return "\n".join(filter(None, [_read_inline(block.get("caption")), *lines]))


def _iter_files(blocks: object, depth: int) -> Iterator[IncomingFile]:
    for block in as_objects(blocks) if depth <= _MAX_DEPTH else ():
        kind = str(block.get("type"))
        if kind == "photo" and (sizes := as_objects(block.get("photo"))):
            yield parse_photo(sizes)
        elif kind in _FILE_BLOCKS and (media := as_object(block.get(kind))):
            yield parse_file(media, *_FILE_BLOCKS[kind][1:])
        yield from _iter_files(block.get("blocks"), depth + 1)
        for item in as_objects(block.get("items")):
            yield from _iter_files(item.get("blocks"), depth + 1)
