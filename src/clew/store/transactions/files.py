"""Files that came with a message: kept as blobs, each content once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.showing import display_kind
from clew.store.transactions import inbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import ConversationId, InboxId
    from clew.store.contract import Tx


#: Of a tool's result that is kept whole.
RESULT_TYPE = "text/plain; charset=utf-8; clew=tool-result"


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
    t: Tx, conversation: ConversationId, inbox_id: InboxId | None, file: Fetched, content: bytes
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


def keep_result(
    t: Tx, conversation: ConversationId, call_id: str, *, tool: str, content: bytes
) -> None:
    """Keep the whole of a tool's result; repeating it changes nothing."""
    digest = hashlib.sha256(f"{conversation} {call_id}".encode()).hexdigest()
    file = Fetched(
        id=f"att_{digest[:26]}",
        name=_result_name(tool, call_id),
        media_type=RESULT_TYPE,
        content=content,
    )
    _keep(t, conversation, None, file, content)


def _result_name(tool: str, call_id: str) -> str:
    return f"result of {tool}, call {call_id}"


def result_of(t: Tx, conversation: ConversationId, call_id: str) -> bytes | None:
    """The whole of a tool's result; ``None`` if it was not too long, or there is none."""
    found = t.all(
        """
        SELECT a.name, b.bytes FROM attachment a JOIN blob b ON b.sha256 = a.sha256
        WHERE a.conversation_id = $1 AND a.media_type = $2
        """,
        conversation,
        RESULT_TYPE,
    )
    return next((bytes(row[1]) for row in found if row[0].endswith(f", call {call_id}")), None)


def _told(file: Fetched) -> dict[str, object]:
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


def contents(t: Tx, digests: Sequence[str]) -> dict[str, bytes]:
    """What files hold, by their SHA-256 in hex; those that are gone are left out."""
    found: dict[str, bytes] = {}
    for digest in digests:
        row = t.one("SELECT bytes FROM blob WHERE sha256 = $1", bytes.fromhex(digest))
        if row is not None:
            found[digest] = bytes(row[0])
    return found


def share(t: Tx, source: ConversationId, target: ConversationId, texts: Sequence[str]) -> None:
    """Have a branch keep the files that its messages name; repeating it changes nothing."""
    found = t.all(
        """
        SELECT id, sha256, name, media_type FROM attachment WHERE conversation_id = $1 ORDER BY id
        """,
        source,
    )
    for number, (_, sha256, name, media_type) in enumerate(found):
        # A file is named by its digest, a result by its call.
        mark = bytes(sha256).hex()
        if media_type == RESULT_TYPE:
            mark = json.dumps(name.rpartition(", call ")[2])
        if any(mark in text for text in texts):
            t.run(
                """
                INSERT INTO attachment (id, conversation_id, sha256, name, media_type)
                VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING
                """,
                f"att_{target.partition('_')[2]}_{number}",
                target,
                sha256,
                name,
                media_type,
            )


def content(t: Tx, attachment: str) -> bytes | None:
    """What an attachment holds; ``None`` if there is none of this id."""
    row = t.one(
        """
        SELECT b.bytes FROM attachment a JOIN blob b ON b.sha256 = a.sha256 WHERE a.id = $1
        """,
        attachment,
    )
    return None if row is None else bytes(row[0])
