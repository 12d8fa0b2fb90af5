"""Named locks with expiry: compression, and whatever one process at a time may do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core.ids import ConversationId
from clew.errors import OperationRefused
from clew.store.transactions.owners import get_owner
from clew.store.transactions.sessions import get_session

if TYPE_CHECKING:
    from clew.core.ids import OwnerId, SessionId
    from clew.store.contract import Tx

#: Longer than any summary may take.
COMPRESSION = timedelta(minutes=10)
#: A compression lock that ran out longer ago is nobody's.
_LEFT_AFTER = timedelta(days=1)


def try_lock(t: Tx, name: str, holder: str, *, duration: timedelta) -> bool:
    """Take or extend a named lock; ``False`` while another holder has it in time."""
    expires_at = t.now + duration // timedelta(milliseconds=1)
    return bool(
        t.run(
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


def take_right(t: Tx, name: str, owner: OwnerId, *, duration: timedelta) -> str | None:
    """
    As ``try_lock`` for a process, which loses it with its life.

    ``None`` if ``owner`` has it now; else who has, for people.
    """
    holding = lock_holder(t, name)
    if holding is not None and holding != owner and not t.alive(holding):
        unlock(t, name, holding)
    if try_lock(t, name, owner, duration=duration):
        return None
    return _place(t, lock_holder(t, name) or holding or "another process")


@dataclass(frozen=True, kw_only=True, slots=True)
class Right:
    """What one process alone may do, and which does."""

    name: str
    #: The process, for people.
    holder: str


def rights(t: Tx) -> list[Right]:
    """Which living process has which right now."""
    found = t.all(
        "SELECT name, holder FROM lock WHERE name NOT LIKE $1 AND expires_at > $2 ORDER BY name",
        f"{_compression(ConversationId(''))}%",
        t.now,
    )
    return [Right(name=row[0], holder=_place(t, row[1])) for row in found if t.alive(row[1])]


def _place(t: Tx, holder: str) -> str:
    owner = get_owner(t, holder)
    return holder if owner is None else owner.place


def lock_holder(t: Tx, name: str) -> str | None:
    """Who has the lock now."""
    row = t.one("SELECT holder FROM lock WHERE name = $1 AND expires_at > $2", name, t.now)
    return None if row is None else row[0]


def unlock(t: Tx, name: str, holder: str) -> None:
    """Let the lock go, if this holder has it."""
    t.run("DELETE FROM lock WHERE name = $1 AND holder = $2", name, holder)


def left_locks(t: Tx) -> list[tuple[str, str]]:
    """Name and holder of the compression locks that ran out more than a day ago."""
    found = t.all(
        "SELECT name, holder FROM lock WHERE name LIKE $1 AND expires_at < $2 ORDER BY name",
        f"{_compression(ConversationId(''))}%",
        t.now - _LEFT_AFTER // timedelta(milliseconds=1),
    )
    return [(row[0], row[1]) for row in found]


def forget_locks(t: Tx) -> int:
    """Let those go; how many."""
    return t.run(
        "DELETE FROM lock WHERE name LIKE $1 AND expires_at < $2",
        f"{_compression(ConversationId(''))}%",
        t.now - _LEFT_AFTER // timedelta(milliseconds=1),
    )


def _compression(conversation: ConversationId) -> str:
    return f"compression:{conversation}"


def try_acquire_compression_lock(
    t: Tx, session: SessionId, holder: str, *, duration: timedelta = COMPRESSION
) -> bool:
    """
    Take the compression lock of the session's conversation; ``False`` while another has it.

    A holder that is named ``OWNER:…`` loses it with its owner's death.

    :raises NotFound: if there is no such session
    """
    name = _compression(get_session(t, session).conversation_id)
    holding = lock_holder(t, name)
    if holding is not None and _is_dead(t, holding):
        unlock(t, name, holding)
    return try_lock(t, name, holder, duration=duration)


def get_compression_lock_holder(t: Tx, session: SessionId) -> str | None:
    """
    Who has the compression lock of the session's conversation, and lives.

    :raises NotFound: if there is no such session
    """
    holding = lock_holder(t, _compression(get_session(t, session).conversation_id))
    return None if holding is None or _is_dead(t, holding) else holding


def refuse_second_compaction(t: Tx, conversation: ConversationId, *, command: str) -> None:
    """:raises Refused: while one is under way, or a ``command`` that asks for one waits"""
    # Of two that file one at the same time, the second looks after the first has committed.
    t.one("SELECT fence FROM lease WHERE conversation_id = $1 @LOCK", conversation)
    waiting = t.one(
        """
        SELECT 1 FROM inbox
        WHERE conversation_id = $1 AND outcome IS NULL AND kind = 'command' AND text = $2
        """,
        conversation,
        command,
    )
    holding = lock_holder(t, _compression(conversation))
    if waiting is not None or not (holding is None or _is_dead(t, holding)):
        raise OperationRefused("another compaction of this conversation is under way")


def _is_dead(t: Tx, holder: str) -> bool:
    owner, colon, _ = holder.partition(":")
    return bool(colon) and owner.startswith("own_") and not t.alive(owner)


def release_compression_lock(t: Tx, session: SessionId, holder: str) -> None:
    """:raises NotFound: if there is no such session"""
    unlock(t, _compression(get_session(t, session).conversation_id), holder)
