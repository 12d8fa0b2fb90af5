"""Attachments: files of messages and long tool results, stored once per content."""

from __future__ import annotations

import hashlib
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clew.core.attachments import FetchedFile, describe_file
from clew.core.file_reading import MAX_WAIT, list_waiting, mark_files
from clew.core.sent_files import SentFile
from clew.record import Record
from clew.store.transactions import inbox

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.core.ids import ConversationId, InboxId, TurnId
    from clew.store.contract import Tx


#: Media type of a complete tool result.
TOOL_RESULT_TYPE = "text/plain; charset=utf-8; clew=tool-result"
#: Between the tool and the call in the name of a complete result.
_CALL: Final = ", call "


def attach_files(
    t: Tx,
    inbox_id: InboxId,
    files: Sequence[FetchedFile],
    read_as: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """
    Store the files of a message held for them, and release it; ``False`` if it is not held.

    With ``read_as`` (attachment → what its text is) it stays held for the texts of these.
    Repeating it changes nothing.
    """
    item = inbox.find_item(t, inbox_id)
    if item is None or item.outcome is not None:
        return False
    if list_waiting(item.payload):
        return True  # they are there, and it waits for their texts
    store_files(t, item.conversation_id, inbox_id, files)
    payload = mark_files(add_file_details(item.payload, files), read_as)
    if read_as:
        return inbox.keep_holding_item(t, inbox_id, payload, hold=MAX_WAIT)
    return inbox.release_held_item(t, inbox_id, payload)


def add_file_details(payload: str, files: Sequence[FetchedFile]) -> str:
    """Return a message's payload with its files described; contents are stored apart."""
    told = {**json.loads(payload), "files": [describe_file(file) for file in files]}
    return json.dumps(told, ensure_ascii=False)


def store_files(
    t: Tx, conversation: ConversationId, inbox_id: InboxId | None, files: Sequence[FetchedFile]
) -> None:
    """Store the contents of a message's files; repeating it changes nothing."""
    for file in files:
        if file.content is not None:
            _store_file(t, conversation, inbox_id, file, file.content)


def _store_file(
    t: Tx, conversation: ConversationId, inbox_id: InboxId | None, file: FetchedFile, content: bytes
) -> None:
    digest = hashlib.sha256(content).digest()
    t.execute(
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
    t.execute(
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


def store_tool_result(
    t: Tx, conversation: ConversationId, call_id: str, *, tool: str, content: bytes
) -> None:
    """Store the complete result of a tool call; repeating it changes nothing."""
    digest = hashlib.sha256(f"{conversation} {call_id}".encode()).hexdigest()
    file = FetchedFile(
        id=f"att_{digest[:26]}",
        name=_result_name(tool, call_id),
        media_type=TOOL_RESULT_TYPE,
        content=content,
    )
    _store_file(t, conversation, None, file, content)


def store_content(
    t: Tx,
    conversation: ConversationId,
    attachment: str,
    *,
    name: str,
    media_type: str,
    content: bytes,
) -> None:
    """Store a content that is part of a conversation; repeating it changes nothing."""
    file = FetchedFile(id=attachment, name=name, media_type=media_type, content=content)
    _store_file(t, conversation, None, file, content)


def _result_name(tool: str, call_id: str) -> str:
    return f"result of {tool}{_CALL}{call_id}"


def find_tool_result(t: Tx, conversation: ConversationId, call_id: str) -> bytes | None:
    """Return the complete result of a tool call; ``None`` if none was stored."""
    found = t.fetch_all(
        """
        SELECT a.name, b.bytes FROM attachment a JOIN blob b ON b.sha256 = a.sha256
        WHERE a.conversation_id = $1 AND a.media_type = $2
        """,
        conversation,
        TOOL_RESULT_TYPE,
    )
    return next((bytes(b) for name, b in found if read_call_id(name) == call_id), None)


def read_call_id(name: str) -> str:
    """Return the call whose complete result has a name."""
    return name.partition(_CALL)[2]


def read_contents(t: Tx, digests: Sequence[str]) -> dict[str, bytes]:
    """Return file contents by SHA-256 (hex); missing ones are left out."""
    found: dict[str, bytes] = {}
    for digest in digests:
        content = t.fetch_value("SELECT bytes FROM blob WHERE sha256 = $1", bytes.fromhex(digest))
        if content is not None:
            found[digest] = bytes(content)
    return found


def copy_attachments(
    t: Tx, source: ConversationId, target: ConversationId, texts: Sequence[str]
) -> None:
    """Copy the attachments that a branch's messages name; repeating it changes nothing."""
    found = t.fetch_all(
        """
        SELECT id, sha256, name, media_type FROM attachment WHERE conversation_id = $1 ORDER BY id
        """,
        source,
    )
    for number, (_, sha256, name, media_type) in enumerate(found):
        # Messages name a file by its digest, and a result by its call.
        mark = bytes(sha256).hex()
        if media_type == TOOL_RESULT_TYPE:
            mark = json.dumps(name.rpartition(", call ")[2])
        if any(mark in text for text in texts):
            t.execute(
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


def send_with_turn(
    t: Tx, conversation: ConversationId, turn: TurnId, file: FetchedFile, *, caption: str
) -> SentFile:
    """
    Store a file to be sent with the answer of a turn; repeating it returns the first one.

    :raises ValueError: if the file has no content
    """
    if file.content is None:
        raise ValueError("a file without content cannot be sent")
    _store_file(t, conversation, None, file, file.content)
    t.execute(
        """
        UPDATE attachment
        SET turn_id = $2, caption = $3,
            position = (SELECT count(*) FROM attachment WHERE turn_id = $2)
        WHERE id = $1 AND turn_id IS NULL
        """,
        file.id,
        turn,
        caption,
    )
    return next(one for one in list_sent_files(t, turn) if one.attachment == file.id)


def list_sent_files(t: Tx, turn: TurnId) -> list[SentFile]:
    """Return the files to send with the answer of a turn, in order."""
    found = t.fetch_all(
        """
        SELECT a.id, a.name, a.media_type, b.size, a.sha256, a.caption
        FROM attachment a JOIN blob b ON b.sha256 = a.sha256
        WHERE a.turn_id = $1 ORDER BY a.position, a.id
        """,
        turn,
    )
    return [
        SentFile(
            attachment=id,
            name=name,
            media_type=media_type,
            size=size,
            sha256=bytes(sha256).hex(),
            caption=caption or "",
        )
        for id, name, media_type, size, sha256, caption in found
    ]


class StoredFile(Record):
    """An attachment with its content."""

    name: str
    media_type: str
    content: bytes


def find_file(t: Tx, conversation: ConversationId, attachment: str) -> StoredFile | None:
    """Return an attachment of a conversation; ``None`` if it has none with this id."""
    row = t.fetch_one(
        """
        SELECT a.name, a.media_type, b.bytes
        FROM attachment a JOIN blob b ON b.sha256 = a.sha256
        WHERE a.id = $2 AND a.conversation_id = $1
        """,
        conversation,
        attachment,
    )
    if row is None:
        return None
    name, media_type, content = row
    return StoredFile(name=name, media_type=media_type, content=bytes(content))


def read_content(t: Tx, attachment: str) -> bytes | None:
    """Return the content of an attachment; ``None`` if the id is unknown."""
    content = t.fetch_value(
        """
        SELECT b.bytes FROM attachment a JOIN blob b ON b.sha256 = a.sha256 WHERE a.id = $1
        """,
        attachment,
    )
    return None if content is None else bytes(content)
