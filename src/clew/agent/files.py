"""Files in messages: stored as a line that names one, read by the model with what it holds."""

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

from clew.core import showing
from clew.core.text import sanitize_text, truncate_middle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic_ai.messages import ModelMessage, ModelRequestPart, UserContent

    from clew.core.chat import InlineFile

# In the metadata of a line, which no provider is sent.
_FILE = "clew_file"
_NOT_SHOWN = "(the model in use is not shown pictures)"
_LEFT_OUT = "is not shown any more: the request was too large]"
_GONE = "(what it held is not kept any more)"


def line_of(file: InlineFile) -> TextContent:
    """The line of a file, as it is stored."""
    told = {"sha256": file.sha256, "name": file.name, "kind": file.kind, "size": file.size}
    return TextContent(sanitize_text(file.line), metadata={_FILE: told})


def file_in(item: object) -> dict[str, Any] | None:
    """The file that a part of a message names; ``None`` for one that names none."""
    metadata: object = item.metadata if isinstance(item, TextContent) else None
    if not isinstance(metadata, dict):
        return None
    found = cast("dict[str, object]", metadata).get(_FILE)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def files_of(messages: Sequence[ModelMessage]) -> list[str]:
    """The digests of the files that messages name."""
    found = [file["sha256"] for message in messages for file in _files(message)]
    return list(dict.fromkeys(found))


def _items(message: ModelMessage) -> Iterator[UserContent]:
    """What a person said and sent along, where that is more than one text."""
    for part in message.parts:
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            yield from part.content


def _files(message: ModelMessage) -> Iterator[dict[str, Any]]:
    yield from filter(None, map(file_in, _items(message)))


def with_contents(
    message: ModelMessage, contents: Mapping[str, bytes], *, pictures: bool = True
) -> ModelMessage:
    """
    A message as the model reads it: behind the line of each file what that holds.

    The same for the same contents, so that what was sent before is sent again to the letter.
    """
    if not isinstance(message, ModelRequest) or not any(_files(message)):
        return message
    parts = [
        replace(part, content=list(_read(part.content, contents, pictures=pictures)))
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str)
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _read(
    items: Sequence[UserContent], contents: Mapping[str, bytes], *, pictures: bool
) -> Iterator[UserContent]:
    for item in items:
        file = file_in(item)
        if file is None:
            yield item
            continue
        assert isinstance(item, TextContent)
        yield item.content
        content = contents.get(file["sha256"])
        yield _GONE if content is None else _content(file["name"], content, pictures=pictures)


def _content(name: str, content: bytes, *, pictures: bool) -> UserContent:
    if (kind := showing.image_media_type(content)) is not None:
        return BinaryContent(data=content, media_type=kind) if pictures else _NOT_SHOWN
    text = truncate_middle(showing.decode_text(content) or "", showing.MAX_TEXT_CHARS)
    return f"{text.rstrip()}\n[end of {sanitize_text(name)}]"


def shows_picture(message: ModelMessage) -> bool:
    """Whether the model is sent a picture with it."""
    return any(isinstance(item, BinaryContent) for item in [*_items(message), *_returned(message)])


def _returned(message: ModelMessage) -> Iterator[object]:
    """The files that tools returned."""
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            yield from part.files


def has_picture(message: ModelMessage) -> bool:
    """Return whether a message, as it is stored, shows a picture."""
    named = any(file["kind"] == showing.PICTURE for file in _files(message))
    return named or shows_picture(message)


def without_pictures(message: ModelMessage) -> ModelMessage:
    """Return a stored message with a line in place of each picture that it shows."""
    if not isinstance(message, ModelRequest) or not has_picture(message):
        return message
    return replace(message, parts=[_named(part) for part in message.parts])


def _named(part: ModelRequestPart) -> ModelRequestPart:
    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
        return replace(part, content=[cast("UserContent", _line(item)) for item in part.content])
    if isinstance(part, ToolReturnPart) and part.files:
        content: Any = part.content
        if not isinstance(content, list):
            return replace(part, content=_line(content))
        return replace(part, content=[_line(item) for item in cast("list[object]", content)])
    return part


def _line(item: object) -> object:
    if isinstance(item, BinaryContent):
        return f"[a file of {len(item.data):,} bytes ({item.media_type}) {_LEFT_OUT}"
    file = file_in(item)
    if file is None or file["kind"] != showing.PICTURE:
        return item
    assert isinstance(item, TextContent)
    return TextContent(f"{item.content.removesuffix(']')} {_LEFT_OUT}")


def shown_bytes(message: ModelMessage) -> int:
    """Bytes of the files that a message shows, beside its JSON as it is stored."""
    return sum(
        len(item.data) if isinstance(item, BinaryContent) else len(item)
        for item in _items(message)
        if isinstance(item, (BinaryContent, str))
    )
