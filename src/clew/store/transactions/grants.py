"""Grants: permissions of people for more than one call; and whether a turn is tainted."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clew.core.grant import Grant, GrantTerm
from clew.core.ids import GrantId
from clew.errors import NotFound
from clew.store.transactions import rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.approval import Approval
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.store.contract import Tx

_TERMS: Final = {GrantTerm.HOUR: timedelta(hours=1), GrantTerm.ALWAYS: None}


def record_grant(t: Tx, approval: Approval, term: GrantTerm, *, by: str | None) -> Grant:
    """
    Store the grant that the answer to an approval makes; repeating it changes nothing.

    For an hour, it holds in the conversation; always, in its scope.

    :raises NotFound: if the approval offered nothing
    """
    if approval.offer is None:
        raise NotFound("offer of approval", approval.id)
    grant = GrantId(f"grt_{approval.id.removeprefix('apr_')}")
    lifetime = _TERMS[term]
    t.execute(
        """
        INSERT INTO approval_grant (id, scope, conversation_id, tool, pattern, says, by,
                                    from_approval, created_at, expires_at)
        SELECT $1, scope, $3, $4, $5, $6, $7, $8, $9, $10 FROM conversation WHERE id = $2
        ON CONFLICT (id) DO NOTHING
        """,
        grant,
        approval.conversation_id,
        None if lifetime is None else approval.conversation_id,
        approval.offer.tool,
        approval.offer.to_json(),
        approval.offer.says,
        by or "local",
        approval.id,
        t.now,
        None if lifetime is None else t.now + int(lifetime.total_seconds() * 1000),
    )
    return get_grant(t, grant)


def get_grant(t: Tx, grant: GrantId) -> Grant:
    """
    Return a grant, in whatever state.

    :raises NotFound: if there is no such grant
    """
    found = rows.GRANT.fetch_one(t, "WHERE id = $1", grant)
    if found is None:
        raise NotFound("grant", grant)
    return found


def list_grants(t: Tx, scope: Scope, *, every: bool = False) -> list[Grant]:
    """Return the grants in force in a scope, or in every one, oldest first."""
    return rows.GRANT.fetch_all(
        t,
        """
        WHERE (scope = $1 OR $2 = 1) AND revoked_at IS NULL
            AND (expires_at IS NULL OR expires_at > $3)
            AND (uses_left IS NULL OR uses_left > 0)
        ORDER BY created_at, id
        """,
        scope,
        int(every),
        t.now,
    )


def find_grants(t: Tx, conversation: ConversationId, scope: Scope, tool: str) -> list[Grant]:
    """Return the grants that may cover a call of a tool, oldest first."""
    return rows.GRANT.fetch_all(
        t,
        """
        WHERE scope = $1 AND tool = $2 AND (conversation_id IS NULL OR conversation_id = $3)
            AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4)
            AND (uses_left IS NULL OR uses_left > 0)
        ORDER BY created_at, id
        """,
        scope,
        tool,
        conversation,
        t.now,
    )


def revoke_grant(t: Tx, grant: GrantId) -> Grant:
    """
    Revoke a grant; one that was revoked stays so.

    :raises NotFound: if there is no such grant
    """
    t.execute(
        "UPDATE approval_grant SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL",
        grant,
        t.now,
    )
    return get_grant(t, grant)


def revoke_grants_of(t: Tx, by: str) -> int:
    """Revoke all grants that a person gave, and return their count."""
    return t.execute(
        "UPDATE approval_grant SET revoked_at = $2 WHERE by = $1 AND revoked_at IS NULL", by, t.now
    )


def use_grant(t: Tx, grant: GrantId) -> None:
    """Count one use of a grant that has a number of them."""
    t.execute(
        "UPDATE approval_grant SET uses_left = uses_left - 1 WHERE id = $1 AND uses_left > 0",
        grant,
    )


def is_tainted(t: Tx, conversation: ConversationId) -> bool:
    """
    Return whether a conversation has read text that strangers may have written.

    It stays so after a compaction, whose summary may repeat the text. A branch is tainted if its
    origin is, or if its origin no longer exists.
    """
    return t.exists(
        """
        WITH RECURSIVE source (id) AS (
            SELECT CAST($1 AS TEXT)
            UNION
            SELECT c.origin FROM conversation c JOIN source s ON s.id = c.id
            WHERE c.origin IS NOT NULL
        )
        SELECT 1 FROM source s
        WHERE EXISTS (SELECT 1 FROM journal j WHERE j.conversation_id = s.id AND j.untrusted = 1)
            OR EXISTS (SELECT 1 FROM inbox i WHERE i.conversation_id = s.id AND i.untrusted = 1)
            OR NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = s.id)
        LIMIT 1
        """,
        conversation,
    )


def read_permissions(
    t: Tx, conversation: ConversationId, scope: Scope, tool: str
) -> tuple[Sequence[Grant], bool]:
    """Return the grants that may cover a call of a tool, and whether the turn is tainted."""
    return find_grants(t, conversation, scope, tool), is_tainted(t, conversation)
