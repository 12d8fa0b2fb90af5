"""Marks: which fact a plugin was told, so that it is told once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.transactions import rows
from clew.store.transactions.resets import END

if TYPE_CHECKING:
    from clew.core.inbox import InboxItem
    from clew.store.contract import Tx

_KEPT = 30 * 24 * 3600 * 1000
#: What ended less long ago is being told by whoever ended it.
_FRESH = 30_000


#: Stands for every plugin and hook: nothing is left to be told.
ALL = "*"


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
    """Sessions' ends that were carried out of late, and that were not told to the last plugin."""
    found = t.all(
        f"""
        {rows.INBOX}
        WHERE outcome = 'executed' AND kind = 'command' AND text = $1
          AND resolved_at BETWEEN $2 AND $3
          AND NOT EXISTS (
              SELECT 1 FROM hook_mark m WHERE m.subject = inbox.id AND m.hook = $4
          )
        ORDER BY n LIMIT $5
        """,
        END,
        t.now - _KEPT,
        t.now - _FRESH,
        ALL,
        limit,
    )
    return [rows.inbox_item(row) for row in found]


def forget_marks(t: Tx, *, rows: int = 500) -> int:
    """Forget at most ``rows`` of the marks that nothing asks for any more; how many."""
    return t.run(
        """
        DELETE FROM hook_mark WHERE (subject, hook, plugin) IN (
            SELECT subject, hook, plugin FROM hook_mark WHERE told_at < $1 LIMIT $2
        )
        """,
        t.now - 2 * _KEPT,
        rows,
    )
