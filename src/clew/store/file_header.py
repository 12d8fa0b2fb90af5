"""The header of our database files: what they are, and when a backup was taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

#: The application id in the header of our files: "Clew".
APPLICATION_ID: Final = 0x436C6577
MAGIC: Final = b"SQLite format 3\0"
#: ``user_version`` of a store (not a backup), and of an unfinished backup.
STORE, UNFINISHED = 0, 1


def read_stamp(path: Path) -> int | None:
    """
    Return when a backup was taken, or ``STORE``, or ``UNFINISHED``.

    In seconds since the epoch; ``None`` if the file is not one of our databases. Reads only
    the first bytes of the file.
    """
    with path.open("rb") as file:
        header = file.read(100)
    ours = header[:16] == MAGIC and header[68:72] == APPLICATION_ID.to_bytes(4, "big")
    return int.from_bytes(header[60:64], "big") if ours else None
