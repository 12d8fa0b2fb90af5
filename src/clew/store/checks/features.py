"""Tables of features: nothing is left of a conversation that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.ids import ConversationId
from clew.store.checks.check import MAX_VIOLATIONS, Check, Violation
from clew.store.feature_migrations import delete_feature_rows, list_feature_tables

if TYPE_CHECKING:
    from clew.store.contract import Tx


def _find_leftover_rows(t: Tx, again: Violation | None = None) -> list[Violation]:
    found: dict[str, list[str]] = {}
    for table in list_feature_tables(t):
        if (column := table.conversation_column) is None:
            continue
        rows = t.fetch_all(
            f"""
            SELECT DISTINCT o.{column} FROM {table.name} o
            WHERE o.{column} IS NOT NULL
              AND NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = o.{column})
            LIMIT $1
            """,
            MAX_VIOLATIONS,
        )
        for (conversation,) in rows:
            found.setdefault(conversation, []).append(table.name)
    return [
        Violation(
            conversation=ConversationId(conversation),
            seq=None,
            subject=conversation,
            repairable=True,
            detail=f"there are rows of it in {', '.join(tables)}, and it is not there",
        )
        for conversation, tables in found.items()
        if again is None or again.subject == conversation
    ]


def _delete_rows(t: Tx, found: Violation) -> None:
    while delete_feature_rows(t, found.subject, MAX_VIOLATIONS):
        pass


CHECKS: tuple[Check, ...] = (
    Check(
        name="feature-rows",
        description="The tables of features hold nothing of a conversation that is not there.",
        find=_find_leftover_rows,
        repair="delete what is left",
        repair_fn=_delete_rows,
    ),
)
