"""Hook marks: facts already sent to a plugin, so that each is sent once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.inbox import END_COMMAND
from clew.store.transactions import rows

if TYPE_CHECKING:
    from clew.core.inbox import InboxItem
    from clew.store.contract import Tx

_RETENTION_MS = 30 * 24 * 3600 * 1000
#: A more recent end is still being reported by the process that ended it.
_GRACE_MS = 30_000


#: Means every plugin and hook: nothing is left to send.
ALL = "*"


def add_mark(t: Tx, plugin: str, hook: str, subject: str) -> None:
    """Record that a plugin was notified."""
    t.execute(
        """
        INSERT INTO hook_mark (plugin, hook, subject, told_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (subject, hook, plugin) DO NOTHING
        """,
        plugin,
        hook,
        subject,
        t.now,
    )


def list_notified_plugins(t: Tx, hook: str, subject: str) -> set[str]:
    """Return the plugins that were notified."""
    return set(
        t.fetch_column(
            "SELECT plugin FROM hook_mark WHERE subject = $1 AND hook = $2", subject, hook
        )
    )


def list_unnotified_ends(t: Tx, *, limit: int = 100) -> list[InboxItem]:
    """Return recently executed session ends that not all plugins were notified of."""
    return rows.INBOX.fetch_all(
        t,
        """
        WHERE outcome = 'executed' AND kind = 'command' AND text = $1
          AND resolved_at BETWEEN $2 AND $3
          AND NOT EXISTS (
              SELECT 1 FROM hook_mark m WHERE m.subject = inbox.id AND m.hook = $4
          )
        ORDER BY n LIMIT $5
        """,
        END_COMMAND,
        t.now - _RETENTION_MS,
        t.now - _GRACE_MS,
        ALL,
        limit,
    )


def delete_old_marks(t: Tx, *, rows: int = 500) -> int:
    """Delete at most ``rows`` obsolete marks, and return their count."""
    return t.execute(
        """
        DELETE FROM hook_mark WHERE (subject, hook, plugin) IN (
            SELECT subject, hook, plugin FROM hook_mark WHERE told_at < $1 LIMIT $2
        )
        """,
        t.now - 2 * _RETENTION_MS,
        rows,
    )
