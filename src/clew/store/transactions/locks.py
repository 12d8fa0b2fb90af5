"""Named locks with expiry: compaction, and work reserved for one process at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core.ids import ConversationId
from clew.errors import OperationRefused
from clew.record import Record
from clew.store.transactions.owners import find_owner
from clew.store.transactions.sessions import get_session

if TYPE_CHECKING:
    from clew.core.ids import OwnerId, SessionId
    from clew.store.contract import Tx

#: Longer than any summary request may take.
COMPRESSION_LOCK_DURATION = timedelta(minutes=10)
#: A compression lock that expired longer ago is abandoned.
_ABANDONED_AFTER = timedelta(days=1)


def try_lock(t: Tx, name: str, holder: str, *, duration: timedelta) -> bool:
    """Acquire or extend a named lock; ``False`` while another holder has it."""
    expires_at = t.now + duration // timedelta(milliseconds=1)
    return bool(
        t.execute(
            """
            INSERT INTO lock (name, holder, expires_at) VALUES ($1, $2, $3)
            ON CONFLICT (name) DO UPDATE
            SET holder = excluded.holder, expires_at = excluded.expires_at
            WHERE lock.holder = excluded.holder OR lock.expires_at <= $4
            """,
            name,
            holder,
            expires_at,
            t.now,
        )
    )


def acquire_process_lock(t: Tx, name: str, owner: OwnerId, *, duration: timedelta) -> str | None:
    """
    Acquire a named lock for a process; it is lost when the process dies.

    ``None`` if ``owner`` has it now; else a description of the holder.
    """
    holding = get_lock_holder(t, name)
    if holding is not None and holding != owner and not t.is_alive(holding):
        release_lock(t, name, holding)
    if try_lock(t, name, owner, duration=duration):
        return None
    return _describe_holder(t, get_lock_holder(t, name) or holding or "another process")


class ProcessLock(Record):
    """A named lock and the process that holds it."""

    name: str
    #: Description of the process.
    holder: str


def list_process_locks(t: Tx) -> list[ProcessLock]:
    """Return the named locks that living processes hold now."""
    found = t.fetch_map(
        "SELECT name, holder FROM lock WHERE name NOT LIKE $1 AND expires_at > $2 ORDER BY name",
        f"{_compression_lock_name(ConversationId(''))}%",
        t.now,
    )
    return [
        ProcessLock(name=name, holder=_describe_holder(t, holder))
        for name, holder in found.items()
        if t.is_alive(holder)
    ]


def _describe_holder(t: Tx, holder: str) -> str:
    owner = find_owner(t, holder)
    return holder if owner is None else owner.description


def get_lock_holder(t: Tx, name: str) -> str | None:
    """Return the current holder of a lock, or ``None``."""
    return t.fetch_value("SELECT holder FROM lock WHERE name = $1 AND expires_at > $2", name, t.now)


def release_lock(t: Tx, name: str, holder: str) -> None:
    """Release the lock, if this holder has it."""
    t.execute("DELETE FROM lock WHERE name = $1 AND holder = $2", name, holder)


def list_abandoned_locks(t: Tx) -> list[tuple[str, str]]:
    """Return name and holder of compression locks that expired over a day ago."""
    found = t.fetch_all(
        "SELECT name, holder FROM lock WHERE name LIKE $1 AND expires_at < $2 ORDER BY name",
        f"{_compression_lock_name(ConversationId(''))}%",
        t.now - _ABANDONED_AFTER // timedelta(milliseconds=1),
    )
    return [(name, holder) for name, holder in found]


def delete_abandoned_locks(t: Tx) -> int:
    """Delete the abandoned compression locks, and return their count."""
    return t.execute(
        "DELETE FROM lock WHERE name LIKE $1 AND expires_at < $2",
        f"{_compression_lock_name(ConversationId(''))}%",
        t.now - _ABANDONED_AFTER // timedelta(milliseconds=1),
    )


def _compression_lock_name(conversation: ConversationId) -> str:
    return f"compression:{conversation}"


def try_acquire_compression_lock(
    t: Tx, session: SessionId, holder: str, *, duration: timedelta = COMPRESSION_LOCK_DURATION
) -> bool:
    """
    Acquire the compression lock of the session's conversation; ``False`` while it is held.

    A holder that is named ``OWNER:…`` loses it when that owner dies.

    :raises NotFound: if there is no such session
    """
    name = _compression_lock_name(get_session(t, session).conversation_id)
    holding = get_lock_holder(t, name)
    if holding is not None and _is_holder_dead(t, holding):
        release_lock(t, name, holding)
    return try_lock(t, name, holder, duration=duration)


def get_compression_lock_holder(t: Tx, session: SessionId) -> str | None:
    """
    Return the living holder of the compression lock of the session's conversation.

    :raises NotFound: if there is no such session
    """
    holding = get_lock_holder(t, _compression_lock_name(get_session(t, session).conversation_id))
    return None if holding is None or _is_holder_dead(t, holding) else holding


def raise_if_compacting(t: Tx, conversation: ConversationId, *, command: str) -> None:
    """
    Raise an error if a compaction is running or queued.

    :raises OperationRefused: while one is running, or a ``command`` that requests one is
        queued
    """
    # Of two concurrent requests, the second checks after the first has committed.
    t.fetch_one("SELECT fence FROM lease WHERE conversation_id = $1 @LOCK", conversation)
    waiting = t.fetch_one(
        """
        SELECT 1 FROM inbox
        WHERE conversation_id = $1 AND outcome IS NULL AND kind = 'command' AND text = $2
        """,
        conversation,
        command,
    )
    holding = get_lock_holder(t, _compression_lock_name(conversation))
    if waiting is not None or not (holding is None or _is_holder_dead(t, holding)):
        raise OperationRefused("another compaction of this conversation is under way")


def _is_holder_dead(t: Tx, holder: str) -> bool:
    owner, colon, _ = holder.partition(":")
    return bool(colon) and owner.startswith("own_") and not t.is_alive(owner)


def release_compression_lock(t: Tx, session: SessionId, holder: str) -> None:
    """
    Release the compression lock of the session's conversation, if this holder has it.

    :raises NotFound: if there is no such session
    """
    release_lock(t, _compression_lock_name(get_session(t, session).conversation_id), holder)
