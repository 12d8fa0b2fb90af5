"""What an editor's prompt says: its text, and its files."""

from __future__ import annotations

import base64
import mimetypes
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)

from clew.acp.failures import invalid
from clew.core.attachments import MAX_FILE_BYTES
from clew.wire.params import Attachment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PromptBlock = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)
#: The types of blocks that are understood.
KNOWN_TYPES: Final = ("text", "image", "resource_link", "resource")
_BINARY: Final = "application/octet-stream"


@dataclass(slots=True)
class PromptContent:
    """A message: its text, and files beside it."""

    pieces: list[str] = field(default_factory=list[str])
    files: list[Attachment] = field(default_factory=list[Attachment])

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def reject_unknown_blocks(params: Mapping[str, Any]) -> None:
    """
    Check the types of the blocks of a prompt, before anything is taken from it.

    :raises RequestError: naming each type that is not understood
    """
    blocks = params.get("prompt")
    if not isinstance(blocks, list):
        return
    found = [_type_of(block) for block in cast("list[object]", blocks)]
    if unknown := sorted({kind for kind in found if kind not in KNOWN_TYPES}):
        raise invalid(
            f"Clew does not understand {', '.join(map(repr, unknown))} in a prompt, only "
            f"{', '.join(KNOWN_TYPES)}: nothing was sent"
        )


def _type_of(block: object) -> str:
    kind = cast("dict[str, object]", block).get("type") if isinstance(block, dict) else None
    return str(kind)[:100]


def read_prompt(blocks: Sequence[PromptBlock]) -> PromptContent:
    """
    Return the message of a prompt; a link to a file of this machine brings its content.

    :raises RequestError: if it is empty
    """
    content = PromptContent()
    for block in blocks:
        _add_block(content, block)
    if not content.text.strip():
        if not content.files:
            raise invalid("the prompt is empty")
        content.pieces = [", ".join(file.name for file in content.files)]
    return content


def _add_block(content: PromptContent, block: PromptBlock) -> None:
    match block:
        case TextContentBlock():
            content.pieces.append(block.text)
        case ImageContentBlock():
            name = _name_of(block.uri, fallback="image", media_type=block.mime_type)
            content.files.append(Attachment(name=name, media_type=block.mime_type, data=block.data))
        case ResourceContentBlock():
            content.pieces.append(_mention(block.uri))
            _add_linked_file(content, block.uri)
        case EmbeddedResourceContentBlock(resource=resource):
            content.pieces.append(_mention(resource.uri))
            content.files.append(_embedded(block))
        case AudioContentBlock():  # refused before
            pass


def _embedded(block: EmbeddedResourceContentBlock) -> Attachment:
    resource = block.resource
    name = _name_of(resource.uri, fallback="resource", media_type=resource.mime_type)
    if isinstance(resource, BlobResourceContents):
        return Attachment(name=name, media_type=resource.mime_type or _BINARY, data=resource.blob)
    return _make_attachment(name, resource.mime_type or "text/plain", resource.text.encode())


def _mention(uri: str) -> str:
    """Return a link as the model reads it: a path of this machine, or the address."""
    path = _local_path(uri)
    return f"@{uri if path is None else path}"


def _local_path(uri: str) -> Path | None:
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    return Path(uri) if uri.startswith("/") else None


def _add_linked_file(content: PromptContent, uri: str) -> None:
    """Add the file that a person pointed at; one that cannot be read is only named."""
    path = _local_path(uri)
    if path is None:
        return
    try:
        if not path.is_file():
            return
        if path.stat().st_size > MAX_FILE_BYTES:
            content.pieces.append(f" (larger than {MAX_FILE_BYTES:,} bytes: not attached)")
            return
        data = path.read_bytes()
    except OSError as error:
        content.pieces.append(f" (cannot be read: {error.strerror})")
        return
    media_type = mimetypes.guess_type(path.name)[0] or _BINARY
    content.files.append(_make_attachment(path.name[:255], media_type, data))


def _make_attachment(name: str, media_type: str, content: bytes) -> Attachment:
    data = base64.b64encode(content).decode()
    return Attachment(name=name, media_type=media_type, data=data)


def _name_of(uri: str | None, *, fallback: str, media_type: str | None) -> str:
    """Return the name of a file by its address, else one with a fitting ending."""
    name = PurePosixPath(unquote(urlsplit(uri or "").path)).name[:255]
    return name or f"{fallback}{mimetypes.guess_extension(media_type or '') or ''}"
