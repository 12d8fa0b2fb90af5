"""Stored contents: attachments have their bytes, sessions their tools; hashes match."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.core.session_prefix import digest_tools
from clew.store.checks.check import MAX_VIOLATIONS, Check, Violation, sql_check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.store.contract import Tx

#: Unreferenced bytes older than this were left behind, in milliseconds.
_UNREFERENCED_AFTER = 24 * 3600 * 1000


def _iter_keys(t: Tx) -> Iterator[bytes]:
    last = b""
    while keys := t.fetch_column(
        "SELECT sha256 FROM blob WHERE sha256 > $1 ORDER BY sha256 LIMIT 500", last
    ):
        yield from map(bytes, keys)
        last = bytes(keys[-1])


def _find_changed_blobs(t: Tx, again: Violation | None = None) -> list[Violation]:
    found: list[Violation] = []
    for sha256 in _iter_keys(t) if again is None else [bytes.fromhex(again.subject)]:
        rows = t.fetch_all("SELECT size, bytes FROM blob WHERE sha256 = $1", sha256)
        for size, content in rows:
            if wrong := _compare_content(sha256, size, bytes(content)):
                found.append(wrong)
        if len(found) >= MAX_VIOLATIONS:
            break
    return found


def _compare_content(sha256: bytes, size: int, content: bytes) -> Violation | None:
    intact = hashlib.sha256(content).digest() == sha256
    if intact and size == len(content):
        return None
    what = f"has {len(content)} bytes, not {size}" if intact else "was changed"
    return Violation(
        conversation=None,
        seq=None,
        subject=sha256.hex(),
        repairable=intact,
        detail=f"attachment {sha256.hex()[:12]} {what}",
    )


def _fix_size(t: Tx, found: Violation) -> None:
    key = bytes.fromhex(found.subject)
    t.execute("UPDATE blob SET size = length(bytes) WHERE sha256 = $1", key)


def _find_unreferenced(t: Tx, again: Violation | None = None) -> list[Violation]:
    rows = t.fetch_all(
        """
        SELECT b.sha256, b.size FROM blob b
        WHERE b.created_at < $1
          AND NOT EXISTS (SELECT 1 FROM attachment a WHERE a.sha256 = b.sha256)
        ORDER BY b.sha256
        """,
        t.now - _UNREFERENCED_AFTER,
    )
    return [
        Violation(
            conversation=None,
            seq=None,
            subject=bytes(sha256).hex(),
            repairable=True,
            detail=f"nothing refers to attachment {bytes(sha256).hex()[:12]}, of {size} bytes",
        )
        for sha256, size in rows
        if again is None or again.subject == bytes(sha256).hex()
    ]


def _forget_tools(t: Tx, found: Violation) -> None:
    t.execute("UPDATE session SET tools = NULL WHERE id = $1", found.subject)


def _find_changed_tools(t: Tx, again: Violation | None = None) -> list[Violation]:
    return [
        Violation(
            conversation=None,
            seq=None,
            subject=digest,
            repairable=False,
            detail=f"the list of tools {digest[:12]} was changed",
        )
        for digest, definitions in t.fetch_all("SELECT digest, definitions FROM toolset")
        if (again is None or again.subject == digest) and digest_tools(definitions) != digest
    ]


def _delete_unreferenced(t: Tx, found: Violation) -> None:
    t.execute(
        """
        DELETE FROM blob WHERE sha256 = $1
          AND NOT EXISTS (SELECT 1 FROM attachment a WHERE a.sha256 = blob.sha256)
        """,
        bytes.fromhex(found.subject),
    )


CHECKS: tuple[Check, ...] = (
    sql_check(
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
        description="The bytes of an attachment are those that were stored, and as many.",
        find=_find_changed_blobs,
        repair="store how many bytes {subject} has",
        repair_fn=_fix_size,
        manual_fix="restore a backup that has them, or ask for the file again",
    ),
    Check(
        name="blob-used",
        description="Bytes that no attachment refers to go within a day.",
        find=_find_unreferenced,
        repair="remove the bytes of {subject}",
        repair_fn=_delete_unreferenced,
    ),
    sql_check(
        "session-tools",
        "A session has the definitions of its tools.",
        """
        SELECT s.conversation_id, CAST(NULL AS BIGINT), s.id, 1,
               'the list of tools of session ' || s.id || ' is missing'
        FROM session s
        WHERE s.tools IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM toolset k WHERE k.digest = s.tools) {s.conversation_id}
        """,
        repair="have session {subject} store its tools anew with its next request",
        mend=_forget_tools,
        refused=True,
    ),
    Check(
        name="tools-content",
        description="A list of tools is the one that was stored.",
        find=_find_changed_tools,
        manual_fix="restore a backup that has it, or compress the conversations that use it",
    ),
)
