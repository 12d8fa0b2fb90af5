"""Attachments in messages: stored as a line that names the file, sent with its content."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    TextContent,
    ToolReturnPart,
    UserPromptPart,
)

from clew.core import attachments
from clew.core.text import sanitize_text, truncate_middle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic_ai.messages import ModelMessage, ModelRequestPart, UserContent

    from clew.core.channel_events import InlineFile

# In the metadata of a line, which is not sent to providers.
_FILE_KEY = "clew_file"
_NO_IMAGE_SUPPORT = "(the model in use is not shown pictures)"
_IMAGE_DROPPED = "is not shown any more: the request was too large]"
_IMAGE_REFUSED = "is not shown: the model in use accepts no pictures]"
_CONTENT_MISSING = "(what it held is not kept any more)"


def make_attachment_line(file: InlineFile) -> TextContent:
    """Return the line of a file as it is stored."""
    told = {"sha256": file.sha256, "name": file.name, "kind": file.kind, "size": file.size}
    return TextContent(sanitize_text(file.line), metadata={_FILE_KEY: told})


def parse_attachment_line(item: object) -> dict[str, Any] | None:
    """Return the file that a part of a message names; ``None`` if it names none."""
    metadata: object = item.metadata if isinstance(item, TextContent) else None
    if not isinstance(metadata, dict):
        return None
    found = cast("dict[str, object]", metadata).get(_FILE_KEY)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def collect_attachment_digests(messages: Sequence[ModelMessage]) -> list[str]:
    """Return the digests of the files that the messages name."""
    found = [file["sha256"] for message in messages for file in _iter_attachments(message)]
    return list(dict.fromkeys(found))


def _iter_user_items(message: ModelMessage) -> Iterator[UserContent]:
    """Yield the items of user content that is more than one text."""
    for part in message.parts:
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            yield from part.content


def _iter_attachments(message: ModelMessage) -> Iterator[dict[str, Any]]:
    yield from filter(None, map(parse_attachment_line, _iter_user_items(message)))


def insert_attachment_contents(
    message: ModelMessage, contents: Mapping[str, bytes], *, pictures: bool = True
) -> ModelMessage:
    """
    Return the message for the model: after the line of each file, its content.

    The result depends only on the contents, so what was sent before is sent unchanged.
    """
    if not isinstance(message, ModelRequest) or not any(_iter_attachments(message)):
        return message
    parts = [
        replace(part, content=list(_iter_with_contents(part.content, contents, pictures=pictures)))
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str)
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _iter_with_contents(
    items: Sequence[UserContent], contents: Mapping[str, bytes], *, pictures: bool
) -> Iterator[UserContent]:
    for item in items:
        file = parse_attachment_line(item)
        if file is None:
            yield item
            continue
        assert isinstance(item, TextContent)
        yield item.content
        content = contents.get(file["sha256"])
        yield (
            _CONTENT_MISSING
            if content is None
            else _make_content(file["name"], content, pictures=pictures)
        )


def _make_content(name: str, content: bytes, *, pictures: bool) -> UserContent:
    if (kind := attachments.image_media_type(content)) is not None:
        return BinaryContent(data=content, media_type=kind) if pictures else _NO_IMAGE_SUPPORT
    text = truncate_middle(attachments.decode_text(content) or "", attachments.MAX_TEXT_CHARS)
    return f"{text.rstrip()}\n[end of {sanitize_text(name)}]"


def has_embedded_image(message: ModelMessage) -> bool:
    """Return whether an image is sent to the model with the message."""
    return any(
        isinstance(item, BinaryContent)
        for item in [*_iter_user_items(message), *_iter_returned_files(message)]
    )


def _iter_returned_files(message: ModelMessage) -> Iterator[object]:
    """Yield the files that tools returned."""
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            yield from part.files


def has_image(message: ModelMessage) -> bool:
    """Return whether a stored message embeds or names an image."""
    named = any(file["kind"] == attachments.PICTURE for file in _iter_attachments(message))
    return named or has_embedded_image(message)


def replace_images(message: ModelMessage, *, refused: bool = False) -> ModelMessage:
    """Return a stored message with a line in place of each image; ``refused`` by the model."""
    if not isinstance(message, ModelRequest) or not has_image(message):
        return message
    why = _IMAGE_REFUSED if refused else _IMAGE_DROPPED
    return replace(message, parts=[_replace_part_images(part, why) for part in message.parts])


def _replace_part_images(part: ModelRequestPart, why: str) -> ModelRequestPart:
    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
        return replace(
            part,
            content=[cast("UserContent", _replace_item_image(item, why)) for item in part.content],
        )
    if isinstance(part, ToolReturnPart) and part.files:
        content: Any = part.content
        if not isinstance(content, list):
            return replace(part, content=_replace_item_image(content, why))
        return replace(
            part,
            content=[_replace_item_image(item, why) for item in cast("list[object]", content)],
        )
    return part


def _replace_item_image(item: object, why: str) -> object:
    if isinstance(item, BinaryContent):
        return f"[a file of {len(item.data):,} bytes ({item.media_type}) {why}"
    file = parse_attachment_line(item)
    if file is None or file["kind"] != attachments.PICTURE:
        return item
    assert isinstance(item, TextContent)
    # Below the line there may be a description of the picture.
    line, _, below = item.content.partition("\n")
    return TextContent("\n".join(filter(None, [f"{line.removesuffix(']')} {why}", below])))


def count_content_bytes(message: ModelMessage) -> int:
    """Return the bytes of the contents inserted into a message, beside its stored JSON."""
    return sum(
        len(item.data) if isinstance(item, BinaryContent) else len(item)
        for item in _iter_user_items(message)
        if isinstance(item, (BinaryContent, str))
    )
