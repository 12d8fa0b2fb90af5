"""Deletions: nothing leads to a deleted conversation or is open in it; a tombstone stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from clew.record import replace
from clew.store.checks.check import Check, Violation, sql_check
from clew.store.transactions.deletion import cancel_open_work

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: Tables whose rows belong to a conversation: rows without one were left behind.
_CONVERSATION_TABLES: tuple[LiteralString, ...] = (
    "session", "turn", "entry", "inbox", "delivery", "journal", "approval", "attachment",
)  # fmt: skip
_LEFTOVER_ROWS: LiteralString = " UNION ALL ".join(
    [
        f"""
        SELECT '{table}' AS place, r.conversation_id FROM (
            SELECT DISTINCT o.conversation_id FROM {table} o
        ) r WHERE NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = r.conversation_id)
        """
        for table in _CONVERSATION_TABLES
    ]
)
_WITHOUT_CONVERSATION: LiteralString = (
    "NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = o.conversation_id)"
)
_WITHOUT_TURN: LiteralString = (
    "EXISTS (SELECT 1 FROM conversation c WHERE c.id = o.conversation_id) "
    "AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = o.turn_id)"
)
#: Unreachable rows: their table, the column that names their parent, and the condition for none.
_ORPHAN_RULES: dict[LiteralString, tuple[LiteralString, LiteralString]] = {
    "base_item": ("session_id", "NOT EXISTS (SELECT 1 FROM session s WHERE s.id = o.session_id)"),
    "compaction": ("session_id", "NOT EXISTS (SELECT 1 FROM session s WHERE s.id = o.session_id)"),
    "delivery_chunk": (
        "delivery_id",
        "NOT EXISTS (SELECT 1 FROM delivery d WHERE d.id = o.delivery_id)",
    ),
    "entry_redaction": ("conversation_id", _WITHOUT_CONVERSATION),
    "journal": ("turn_id", _WITHOUT_TURN),
    "approval_grant": (
        "conversation_id",
        f"o.conversation_id IS NOT NULL AND {_WITHOUT_CONVERSATION}",
    ),
    "approval": ("turn_id", _WITHOUT_TURN),
    "head": ("conversation_id", _WITHOUT_CONVERSATION),
    "lease": ("conversation_id", _WITHOUT_CONVERSATION),
    "client": ("conversation_id", _WITHOUT_CONVERSATION),
    "resent": ("conversation_id", _WITHOUT_CONVERSATION),
    "pending_title": ("conversation_id", _WITHOUT_CONVERSATION),
}
_ALL_ORPHANS: LiteralString = " UNION ALL ".join(
    [
        f"""
        SELECT '{table}' AS place, o.{owner} AS owner, count(*) AS many
        FROM {table} o WHERE {where} GROUP BY o.{owner}
        """
        for table, (owner, where) in _ORPHAN_RULES.items()
    ]
)


def _delete_orphans(t: Tx, found: Violation) -> None:
    table, _, owner = found.subject.partition(" ")
    for name, (column, where) in _ORPHAN_RULES.items():
        if name == table:
            t.execute(f"DELETE FROM {name} AS o WHERE o.{column} = $1 AND {where}", owner)


_ORPHANS = sql_check(
    "loose-ends",
    "A row that belongs to another row is not without it.",
    f"""
    SELECT CAST(NULL AS TEXT), CAST(NULL AS BIGINT), x.place || ' ' || x.owner, 1,
           x.many || ' rows of ' || x.place || ' belong to ' || x.owner || ', which is not there'
    FROM ({_ALL_ORPHANS}) x
    """,
    repair="remove {subject}: nothing can reach it",
    mend=_delete_orphans,
    refused=True,
)


def _find_orphans(t: Tx, again: Violation | None = None) -> list[Violation]:
    # Searching all of those tables again would block others; the removal checks by itself.
    return _ORPHANS.find(t) if again is None else [again]


def _find_leftover_rows(t: Tx, again: Violation | None = None) -> list[Violation]:
    if again is None:
        return _DELETED_ROWS.find(t)
    there = t.fetch_one("SELECT 1 FROM conversation WHERE id = $1", again.conversation)
    return [again] if there is None else []


def _restart_deletion(t: Tx, found: Violation) -> None:
    # As a conversation whose deletion was interrupted: its rows are deleted in batches later.
    t.execute(
        """
        INSERT INTO conversation (id, scope, created_at, deleting_at)
        SELECT conversation_id, 'local', deleted_at, deleted_at FROM tombstone
        WHERE conversation_id = $1
        """,
        found.conversation,
    )


def _remove_route_and_lease(t: Tx, found: Violation) -> None:
    for table in ("route", "head", "lease"):
        t.execute(f"DELETE FROM {table} WHERE conversation_id = $1", found.conversation)


def _end_open_work(t: Tx, found: Violation) -> None:
    assert found.conversation is not None
    cancel_open_work(t, found.conversation)


def _write_tombstone(t: Tx, found: Violation) -> None:
    t.execute(
        """
        INSERT INTO tombstone (conversation_id, last_seq, last_hash, deleted_at)
        SELECT c.id, e.seq, e.hash, c.deleting_at
        FROM conversation c JOIN entry e ON e.conversation_id = c.id
        WHERE c.id = $1 AND e.seq = (SELECT max(seq) FROM entry WHERE conversation_id = $1)
        """,
        found.conversation,
    )


_DELETED_ROWS = sql_check(
    "deleted-rows",
    "Nothing is left of a conversation that is not there.",
    f"""
    SELECT x.conversation_id, CAST(NULL AS BIGINT), x.conversation_id,
           CASE WHEN b.conversation_id IS NULL THEN 0 ELSE 1 END,
           'there are rows of it in ' || count(*) || ' tables, among them ' || min(x.place)
           || CASE WHEN b.conversation_id IS NULL THEN ', and it was never deleted'
              ELSE ', and it was deleted' END
    FROM ({_LEFTOVER_ROWS}) x LEFT JOIN tombstone b ON b.conversation_id = x.conversation_id
    GROUP BY x.conversation_id, b.conversation_id
    """,
    repair="delete what is left",
    mend=_restart_deletion,
    decide="restore a backup: the conversation's own row is lost",
    refused=True,
)

CHECKS: tuple[Check, ...] = (
    sql_check(
        "route-leads",
        "A route leads to a conversation that is there.",
        """
        SELECT CAST(NULL AS TEXT), CAST(NULL AS BIGINT), r.key, 1,
               'route ' || r.key || ' leads to ' || r.conversation_id || ', which was deleted'
        FROM route r LEFT JOIN conversation c ON c.id = r.conversation_id
        WHERE (c.id IS NULL OR c.deleting_at IS NOT NULL) {=r.key}
        """,
        repair="free the route {subject}: the next message there begins a new conversation",
        mend=lambda t, found: t.execute(
            """
            DELETE FROM route WHERE key = $1 AND NOT EXISTS (
                SELECT 1 FROM conversation c
                WHERE c.id = route.conversation_id AND c.deleting_at IS NULL
            )
            """,
            found.subject,
        ),
    ),
    sql_check(
        "deleted-reach",
        "A conversation that is being deleted can be neither read nor written.",
        """
        SELECT c.id, CAST(NULL AS BIGINT), c.id, 1,
               'it is being deleted, and still has a head or a lease'
        FROM conversation c
        WHERE c.deleting_at IS NOT NULL AND (
            EXISTS (SELECT 1 FROM head h WHERE h.conversation_id = c.id)
            OR EXISTS (SELECT 1 FROM lease l WHERE l.conversation_id = c.id)) {c.id}
        """,
        repair="take its head and its lease away",
        mend=_remove_route_and_lease,
    ),
    sql_check(
        "deleted-open",
        "In a conversation that is being deleted nothing is open.",
        """
        SELECT c.id, CAST(NULL AS BIGINT), c.id, 1,
               'it is being deleted, and an input, turn, question or delivery of it is still open'
        FROM conversation c WHERE c.deleting_at IS NOT NULL AND (
          EXISTS (SELECT 1 FROM inbox i WHERE i.conversation_id = c.id AND i.outcome IS NULL)
          OR EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id AND t.state <> 'done')
          OR EXISTS (SELECT 1 FROM approval a WHERE a.conversation_id = c.id AND a.state = 'open')
          OR EXISTS (SELECT 1 FROM delivery d WHERE d.conversation_id = c.id
                     AND d.kind <> 'notice' AND d.state NOT IN ('delivered', 'failed'))) {c.id}
        """,
        repair="end what is open as cancelled, denied or failed",
        mend=_end_open_work,
    ),
    sql_check(
        "tombstone",
        "A conversation that is being deleted has a tombstone.",
        """
        SELECT c.id, CAST(NULL AS BIGINT), c.id,
               CASE WHEN EXISTS (SELECT 1 FROM entry e WHERE e.conversation_id = c.id)
               THEN 1 ELSE 0 END,
               'it is being deleted, and has no tombstone'
        FROM conversation c
        WHERE c.deleting_at IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM tombstone b WHERE b.conversation_id = c.id
        ) {c.id}
        """,
        repair="write the tombstone from its last entry",
        mend=_write_tombstone,
        decide="leave it: its last entry is gone, so no export of it can be verified",
    ),
    replace(_DELETED_ROWS, find=_find_leftover_rows),
    replace(_ORPHANS, find=_find_orphans),
)
