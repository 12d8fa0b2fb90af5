"""File changes in the store: the contents before and after."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from clew.core.journal import CallKey
from clew.record import Record
from clew.store.transactions import attachments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import ConversationId
    from clew.store.contract import Row, Tx

#: Media type of a version of a file.
VERSION_TYPE: Final = "application/octet-stream; clew=file-version"
_COLUMNS: Final = "turn, step, call, conversation, workspace, path, before_sha256, after_sha256"


class FileChange(Record):
    """One change of one file, by one call."""

    key: CallKey
    conversation: ConversationId
    workspace: str
    path: str
    #: SHA-256 of the content; ``None`` where there was no file.
    before: str | None
    after: str

    @property
    def shown_path(self) -> str:
        """The path as the model and people write it."""
        return f"/{self.path}" if self.workspace == "/" else self.path


def hash_content(content: bytes | None) -> str | None:
    """Return the SHA-256 of a content; ``None`` for no file."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def find_change(t: Tx, key: CallKey) -> FileChange | None:
    """Return the change that a call has begun."""
    row = t.fetch_one(
        f"SELECT {_COLUMNS} FROM files_change WHERE turn = $1 AND step = $2 AND call = $3",
        key.turn_id,
        key.step,
        key.call_id,
    )
    return None if row is None else _make_change(row)


def store_change(t: Tx, change: FileChange, before: bytes | None, after: bytes) -> None:
    """Store a change that is about to be made; repeating it changes nothing."""
    for content in (before, after):
        if content is not None:
            _store_version(t, change, content)
    t.execute(
        f"""
        INSERT INTO files_change ({_COLUMNS}, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING
        """,
        change.key.turn_id,
        change.key.step,
        change.key.call_id,
        change.conversation,
        change.workspace,
        change.path,
        change.before,
        change.after,
        t.now,
    )


def _store_version(t: Tx, change: FileChange, content: bytes) -> None:
    attachments.store_content(
        t,
        change.conversation,
        name_version(change.conversation, hashlib.sha256(content).hexdigest()),
        name=f"a version of {change.path}",
        media_type=VERSION_TYPE,
        content=content,
    )


def name_version(conversation: ConversationId, digest: str) -> str:
    """Return the attachment of a content: one for each, however often it is written."""
    name = hashlib.sha256(f"{conversation} file {digest}".encode()).hexdigest()
    return f"att_{name[:26]}"


def forget_change(t: Tx, key: CallKey) -> None:
    """Remove a change that was not made."""
    t.execute(
        "DELETE FROM files_change WHERE turn = $1 AND step = $2 AND call = $3",
        key.turn_id,
        key.step,
        key.call_id,
    )


def read_last_changes(t: Tx, conversation: ConversationId) -> list[FileChange]:
    """Return, in order, the changes of the last turn that has changes left to undo."""
    rows = t.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM files_change
        WHERE conversation = $1 AND settled_at IS NULL AND turn = (
            SELECT turn FROM files_change WHERE conversation = $1 AND settled_at IS NULL
            ORDER BY n DESC LIMIT 1
        )
        ORDER BY n
        """,
        conversation,
    )
    return [_make_change(row) for row in rows]


def settle_changes(t: Tx, keys: Sequence[CallKey]) -> None:
    """Record that changes were undone, or left because something else changed the file."""
    for key in keys:
        t.execute(
            """
            UPDATE files_change SET settled_at = $1 WHERE turn = $2 AND step = $3 AND call = $4
            """,
            t.now,
            key.turn_id,
            key.step,
            key.call_id,
        )


def read_version(t: Tx, digest: str) -> bytes | None:
    """Return a stored content by its SHA-256."""
    return attachments.read_contents(t, [digest]).get(digest)


def _make_change(row: Row) -> FileChange:
    turn, step, call, conversation, workspace, path, before, after = row
    return FileChange(
        key=CallKey(turn_id=turn, step=step, call_id=call),
        conversation=conversation,
        workspace=workspace,
        path=path,
        before=before,
        after=after,
    )
