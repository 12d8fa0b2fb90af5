"""Sent files: what an answer names beside its text, the same in entries and deliveries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Largest file that is sent, on any front: one row of the store, written in one transaction.
MAX_SENT_BYTES: Final = 20_000_000
#: Files of one answer.
MAX_SENT_FILES: Final = 10
#: Characters of a caption: no platform takes fewer.
MAX_CAPTION_CHARS: Final = 900
#: Key of the metadata of a response: its files.
FILES_KEY: Final = "clew_files"


class SentFile(Record):
    """File that is sent with an answer; its content is the blob of an attachment."""

    #: ``att_…``
    attachment: str
    name: str
    media_type: str
    size: int
    #: Of its content, in hex.
    sha256: str
    caption: str = ""


def parse_files(message: str) -> tuple[SentFile, ...]:
    """Return the files that a stored message names."""
    if f'"{FILES_KEY}"' not in message:
        return ()
    stored: Mapping[str, Any] = json.loads(message) or {}
    metadata: Mapping[str, Any] = stored.get("metadata") or {}
    return tuple(SentFile(**one) for one in metadata.get(FILES_KEY) or ())


def make_file_path(conversation: str, attachment: str) -> str:
    """Return the path at which the API answers with the content of a file."""
    return f"/api/conversations/{conversation}/files/{attachment}"
