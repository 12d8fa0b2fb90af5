"""Files in Telegram's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.channel_events import IncomingFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.payload import Json


def parse_photo(sizes: Sequence[Json]) -> IncomingFile:
    """Return the largest size of a photo."""
    return parse_file(max(sizes, key=lambda size: size.get("width", 0)), "photo.jpg", "image/jpeg")


def parse_file(media: Json, name: str, media_type: str) -> IncomingFile:
    """Return a file; name and type stand in for those that Telegram does not give."""
    return IncomingFile(
        id=media["file_id"],
        name=media.get("file_name") or name,
        media_type=media.get("mime_type") or media_type,
        size=media.get("file_size"),
    )
