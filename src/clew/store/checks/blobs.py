"""Attachments: each has its bytes, which are what their name says."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.store.checks.check import MOST, Check, Found, statement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.store.contract import Tx

#: Bytes that nothing refers to for so long were left behind.
_LEFT_AFTER = 24 * 3600 * 1000


def _keys(t: Tx) -> Iterator[bytes]:
    last = b""
    while rows := t.all(
        "SELECT sha256 FROM blob WHERE sha256 > $1 ORDER BY sha256 LIMIT 500", last
    ):
        yield from (bytes(row[0]) for row in rows)
        last = bytes(rows[-1][0])


def _contents(t: Tx, again: Found | None = None) -> list[Found]:
    found: list[Found] = []
    for sha256 in _keys(t) if again is None else [bytes.fromhex(again.subject)]:
        row = t.one("SELECT size, bytes FROM blob WHERE sha256 = $1", sha256)
        if row is not None and (wrong := _wrong(sha256, row[0], bytes(row[1]))):
            found.append(wrong)
        if len(found) >= MOST:
            break
    return found


def _wrong(sha256: bytes, size: int, content: bytes) -> Found | None:
    intact = hashlib.sha256(content).digest() == sha256
    if intact and size == len(content):
        return None
    what = f"has {len(content)} bytes, not {size}" if intact else "was changed"
    return Found(
        conversation=None,
        seq=None,
        subject=sha256.hex(),
        sure=intact,
        detail=f"attachment {sha256.hex()[:12]} {what}",
    )


def _resize(t: Tx, found: Found) -> None:
    key = bytes.fromhex(found.subject)
    t.run("UPDATE blob SET size = length(bytes) WHERE sha256 = $1", key)


def _left(t: Tx, again: Found | None = None) -> list[Found]:
    rows = t.all(
        """
        SELECT b.sha256, b.size FROM blob b
        WHERE b.created_at < $1
          AND NOT EXISTS (SELECT 1 FROM attachment a WHERE a.sha256 = b.sha256)
        ORDER BY b.sha256
        """,
        t.now - _LEFT_AFTER,
    )
    return [
        Found(
            conversation=None,
            seq=None,
            subject=bytes(sha256).hex(),
            sure=True,
            detail=f"nothing refers to attachment {bytes(sha256).hex()[:12]}, of {size} bytes",
        )
        for sha256, size in rows
        if again is None or again.subject == bytes(sha256).hex()
    ]


def _drop(t: Tx, found: Found) -> None:
    t.run(
        """
        DELETE FROM blob WHERE sha256 = $1
          AND NOT EXISTS (SELECT 1 FROM attachment a WHERE a.sha256 = blob.sha256)
        """,
        bytes.fromhex(found.subject),
    )


CHECKS: tuple[Check, ...] = (
    statement(
        "attachment-bytes",
        "An attachment has its bytes.",
        """
        SELECT a.conversation_id, a.seq, a.id, 0,
               'the bytes of attachment ' || a.id || ' (' || a.name || ') are missing'
        FROM attachment a
        WHERE NOT EXISTS (SELECT 1 FROM blob b WHERE b.sha256 = a.sha256) {a.conversation_id}
        """,
        decide="restore a backup that has them, or ask for the file again",
        refused=True,
    ),
    Check(
        name="blob-content",
        says="The bytes of an attachment are those that were stored, and as many.",
        look=_contents,
        repair="store how many bytes {subject} has",
        mend=_resize,
        decide="restore a backup that has them, or ask for the file again",
    ),
    Check(
        name="blob-used",
        says="Bytes that no attachment refers to go within a day.",
        look=_left,
        repair="remove the bytes of {subject}",
        mend=_drop,
    ),
)
