"""Files that came with a message: kept as blobs, each content once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.store.transactions import inbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import ConversationId, InboxId
    from clew.store.contract import Tx


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """What became of one file of a message."""

    #: ``att_…``
    id: str
    name: str
    media_type: str
    content: bytes | None
    #: Why there is no content.
    missing: str | None = None


def arrived(t: Tx, inbox_id: InboxId, files: Sequence[Fetched]) -> bool:
    """
    Keep the files of a message that was held for them, and let it go; ``False`` if it has gone.

    Repeating it changes nothing.
    """
    item = inbox.find_item(t, inbox_id)
    if item is None or item.outcome is not None:
        return False
    keep(t, item.conversation_id, inbox_id, files)
    return inbox.release(t, inbox_id, with_told(item.payload, files))


def with_told(payload: str, files: Sequence[Fetched]) -> str:
    """What came with a message, its files named; their contents are kept apart."""
    told = {**json.loads(payload), "files": [_told(file) for file in files]}
    return json.dumps(told, ensure_ascii=False)


def keep(t: Tx, conversation: ConversationId, inbox_id: InboxId, files: Sequence[Fetched]) -> None:
    """Keep the contents of a message's files; repeating it changes nothing."""
    for file in files:
        if file.content is not None:
            _keep(t, conversation, inbox_id, file, file.content)


def _keep(
    t: Tx, conversation: ConversationId, inbox_id: InboxId, file: Fetched, content: bytes
) -> None:
    digest = hashlib.sha256(content).digest()
    t.run(
        """
        INSERT INTO blob (sha256, size, media_type, bytes, created_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (sha256) DO NOTHING
        """,
        digest,
        len(content),
        file.media_type,
        content,
        t.now,
    )
    t.run(
        """
        INSERT INTO attachment (id, conversation_id, inbox_id, sha256, name, media_type)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING
        """,
        file.id,
        conversation,
        inbox_id,
        digest,
        file.name,
        file.media_type,
    )


def _told(file: Fetched) -> dict[str, object]:
    told: dict[str, object] = {"name": file.name, "media_type": file.media_type}
    if file.content is None:
        return {**told, "missing": file.missing}
    return {**told, "attachment": file.id, "size": len(file.content)}


def content(t: Tx, attachment: str) -> bytes | None:
    """What an attachment holds; ``None`` if there is none of this id."""
    row = t.one(
        """
        SELECT b.bytes FROM attachment a JOIN blob b ON b.sha256 = a.sha256 WHERE a.id = $1
        """,
        attachment,
    )
    return None if row is None else bytes(row[0])
