"""Marks: which fact a plugin was told, so that it is told once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.transactions import rows
from clew.store.transactions.resets import END

if TYPE_CHECKING:
    from clew.core.inbox import InboxItem
    from clew.store.contract import Tx

_KEPT = 30 * 24 * 3600 * 1000


def mark(t: Tx, plugin: str, hook: str, subject: str) -> None:
    """Record that a plugin was told."""
    t.run(
        """
        INSERT INTO hook_mark (plugin, hook, subject, told_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (subject, hook, plugin) DO NOTHING
        """,
        plugin,
        hook,
        subject,
        t.now,
    )


def told(t: Tx, hook: str, subject: str) -> set[str]:
    """The plugins that were told."""
    found = t.all("SELECT plugin FROM hook_mark WHERE subject = $1 AND hook = $2", subject, hook)
    return {row[0] for row in found}


def untold_ends(t: Tx, *, limit: int = 100) -> list[InboxItem]:
    """Sessions' ends that were carried out of late, and of which nobody was told yet."""
    found = t.all(
        f"""
        {rows.INBOX}
        WHERE outcome = 'executed' AND kind = 'command' AND text = $1 AND resolved_at > $2
          AND NOT EXISTS (SELECT 1 FROM hook_mark m WHERE m.subject = inbox.id)
        ORDER BY n LIMIT $3
        """,
        END,
        t.now - _KEPT,
        limit,
    )
    return [rows.inbox_item(row) for row in found]


def forget_marks(t: Tx) -> int:
    """Forget marks that nothing asks for any more; how many."""
    return t.run("DELETE FROM hook_mark WHERE told_at < $1", t.now - 2 * _KEPT)
