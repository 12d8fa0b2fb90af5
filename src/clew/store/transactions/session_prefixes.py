"""Prefixes of sessions: instructions, and lists of tools, of which equal ones are stored once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core.session_prefix import digest_tools, dump_instructions
from clew.errors import SessionEnded
from clew.store.transactions.leases import verify_lease_for_write

if TYPE_CHECKING:
    from clew.core.ids import SessionId
    from clew.core.lease import Lease
    from clew.core.session_prefix import SessionPrefix
    from clew.store.contract import Tx

#: Time for which a list of tools is kept that no session refers to.
UNUSED_FOR = timedelta(days=1)


def store_prefix(t: Tx, lease: Lease, session: SessionId, prefix: SessionPrefix) -> None:
    """
    Store the prefix of the head session before its first request; repeating it changes nothing.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session is not the head any more
    """
    verify_lease_for_write(t, lease)
    digest = None if prefix.tools is None else _store_tools(t, prefix.tools)
    stored = t.execute(
        """
        UPDATE session SET instructions = COALESCE(instructions, $2), tools = COALESCE(tools, $3)
        WHERE id = $1 AND ended_at IS NULL
        """,
        session,
        dump_instructions(prefix.instructions),
        digest,
    )
    if not stored:
        head = t.fetch_value(
            "SELECT session_id FROM head WHERE conversation_id = $1", lease.conversation_id
        )
        raise SessionEnded(session, head=head)


def _store_tools(t: Tx, definitions: str) -> str:
    digest = digest_tools(definitions)
    # Updated, so that a deletion of unused lists, which may run now, leaves it.
    t.execute(
        """
        INSERT INTO toolset (digest, definitions, used_at) VALUES ($1, $2, $3)
        ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at
        """,
        digest,
        definitions,
        t.now,
    )
    return digest


def copy_prefix(t: Tx, source: SessionId, target: SessionId) -> None:
    """Give a new session the prefix of another one, which may have none yet."""
    t.execute(
        """
        UPDATE session SET
            instructions = (SELECT s.instructions FROM session s WHERE s.id = $1),
            tools = (SELECT s.tools FROM session s WHERE s.id = $1)
        WHERE id = $2
        """,
        source,
        target,
    )


def read_tools(t: Tx, digest: str) -> str | None:
    """Return the definitions of a list of tools; ``None`` if it is missing."""
    return t.fetch_value("SELECT definitions FROM toolset WHERE digest = $1", digest)


def delete_unused_tools(t: Tx, *, rows: int = 50, after: timedelta = UNUSED_FOR) -> bool:
    """Delete at most ``rows`` lists of tools that no session has; ``False`` if none are left."""
    return bool(
        t.execute(
            """
            DELETE FROM toolset WHERE used_at < $1 AND digest IN (
                SELECT k.digest FROM toolset k
                WHERE k.used_at < $1
                  AND NOT EXISTS (SELECT 1 FROM session s WHERE s.tools = k.digest)
                LIMIT $2
            )
            """,
            t.now - after // timedelta(milliseconds=1),
            rows,
        )
    )
