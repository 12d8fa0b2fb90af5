"""What of a file a model can be shown: pictures and text. Of anything else it is told the name."""

from __future__ import annotations

from typing import Final

#: Bytes of a picture that providers take.
LARGEST_PICTURE: Final = 5_000_000
#: Characters of a text that enter a context; the rest is left out in its middle.
LONGEST_TEXT: Final = 60_000
#: Bytes of any file that comes with a message.
LARGEST: Final = 8_000_000

PICTURE, TEXT = "picture", "text"

_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def picture_type(content: bytes) -> str | None:
    """
    The type of a picture by its first bytes; ``None`` if it is none that providers take.

    What a sender calls it is no help: a picture that is none makes every later request fail.
    """
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begins, kind in _SIGNATURES if content.startswith(begins)), None)


def text_in(content: bytes) -> str | None:
    """The text that a file holds; ``None`` if it is no UTF-8, or holds what no text does."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text or not text.strip() else text


def shown_as(content: bytes) -> str | None:
    """As what a model is shown a file: ``PICTURE``, ``TEXT``, or not at all."""
    if picture_type(content) is not None:
        return PICTURE if len(content) <= LARGEST_PICTURE else None
    return None if text_in(content) is None else TEXT


def refusal(name: str, content: bytes) -> str | None:
    """Why a file cannot come with a message, as a sentence; ``None`` if it can."""
    most = LARGEST if picture_type(content) is None else LARGEST_PICTURE
    if len(content) <= most:
        return None
    kind = "a file" if most == LARGEST else "a picture"
    return f"{name} has {len(content):,} bytes, and {kind} that is sent along {most:,} at most"
