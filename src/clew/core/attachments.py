"""Attachments that a model can read: images and text. Of others it gets the name only."""

from __future__ import annotations

import hashlib
from typing import Final

from clew.record import Record

#: Largest image that providers accept.
MAX_IMAGE_BYTES: Final = 5_000_000
#: Characters of a text that enter a context; the middle of a longer one is left out.
MAX_TEXT_CHARS: Final = 60_000
#: Largest file of any kind.
MAX_FILE_BYTES: Final = 8_000_000

PICTURE, TEXT = "picture", "text"

_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class FetchedFile(Record):
    """A file of a message, with its content or the reason why it is missing."""

    #: ``att_…``
    id: str
    name: str
    media_type: str
    content: bytes | None
    #: Reason why there is no content.
    missing: str | None = None


def image_media_type(content: bytes) -> str | None:
    """
    Return the media type of an image by its first bytes; ``None`` if not supported.

    The sender's media type is not trusted: a file that is not an image would make every
    later request fail.
    """
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begins, kind in _SIGNATURES if content.startswith(begins)), None)


def decode_text(content: bytes) -> str | None:
    """Return a file's text; ``None`` if it is not UTF-8, has NUL, or is blank."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text or not text.strip() else text


def display_kind(content: bytes) -> str | None:
    """Return how a model receives a file: ``PICTURE``, ``TEXT``, or ``None``."""
    if image_media_type(content) is not None:
        return PICTURE if len(content) <= MAX_IMAGE_BYTES else None
    return None if decode_text(content) is None else TEXT


def find_exceeded_limit(content: bytes) -> int | None:
    """Return the size limit, in bytes, that a file exceeds; ``None`` if it fits."""
    most = MAX_FILE_BYTES if image_media_type(content) is None else MAX_IMAGE_BYTES
    return None if len(content) <= most else most


def describe_file(file: FetchedFile) -> dict[str, object]:
    """Return what the payload of a message says about a file."""
    told: dict[str, object] = {"name": file.name, "media_type": file.media_type}
    if file.content is None:
        return {**told, "missing": file.missing}
    return {
        **told,
        "attachment": file.id,
        "size": len(file.content),
        "sha256": hashlib.sha256(file.content).hexdigest(),
        "shown_as": display_kind(file.content),
    }
