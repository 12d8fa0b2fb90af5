"""Grants: readable, and there if a call names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.grant import GrantPattern
from clew.store.checks.check import MAX_VIOLATIONS, Check, Violation, sql_check

if TYPE_CHECKING:
    from clew.store.contract import Tx


def _find_unreadable_patterns(t: Tx, again: Violation | None = None) -> list[Violation]:
    found: list[Violation] = []
    for grant, conversation, pattern in t.fetch_all(
        "SELECT id, conversation_id, pattern FROM approval_grant WHERE revoked_at IS NULL"
    ):
        if (again is None or again.subject == grant) and not _is_readable(pattern):
            found.append(
                Violation(
                    conversation=conversation,
                    seq=None,
                    subject=grant,
                    repairable=True,
                    detail=f"the pattern of {grant} cannot be read",
                )
            )
    return found[:MAX_VIOLATIONS]


def _is_readable(pattern: str) -> bool:
    try:
        GrantPattern.from_json(pattern)
    except (ValueError, TypeError, AttributeError):
        return False
    return True


CHECKS: tuple[Check, ...] = (
    Check(
        name="grant-pattern",
        description="The pattern of a grant in force can be read.",
        find=_find_unreadable_patterns,
        repair="revoke {subject}: nobody knows what it allows",
        repair_fn=lambda t, found: t.execute(
            "UPDATE approval_grant SET revoked_at = $2 WHERE id = $1", found.subject, t.now
        ),
    ),
    sql_check(
        "grant-used",
        "A call that names a grant names one that was given.",
        """
        SELECT j.conversation_id, CAST(NULL AS BIGINT), j.call_id, 1,
               'call ' || j.call_id || ' of ' || j.tool || ' names ' || j.grant_id
               || ', which was never given'
        FROM journal j
        WHERE j.grant_id IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM approval_grant g WHERE g.id = j.grant_id) {=j.call_id}
        """,
        repair="take the grant off {subject}: its reason stays",
        mend=lambda t, found: t.execute(
            "UPDATE journal SET grant_id = NULL WHERE conversation_id = $1 AND call_id = $2",
            found.conversation,
            found.subject,
        ),
    ),
)
