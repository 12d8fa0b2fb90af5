"""Log: numbered without gaps, counted by the lease, each entry with its session and turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.checks.check import Check, Violation, sql_check

if TYPE_CHECKING:
    from clew.store.contract import Tx

_RESTORE_ADVICE = (
    "restore a backup that has them; what is left can be read and saved with clew sessions export"
)


def _fix_last_seq(t: Tx, found: Violation) -> None:
    t.execute(
        """
        UPDATE lease SET last_seq = (SELECT max(seq) FROM entry WHERE conversation_id = $1)
        WHERE conversation_id = $1
        """,
        found.conversation,
    )


CHECKS: tuple[Check, ...] = (
    sql_check(
        "seq-gapless",
        "The entries of a conversation are numbered 1, 2, 3 … without a gap.",
        """
        SELECT x.conversation_id,
               CASE WHEN x.first > 1 THEN 1 ELSE (
                   SELECT min(a.seq) + 1 FROM entry a
                   WHERE a.conversation_id = x.conversation_id AND NOT EXISTS (
                       SELECT 1 FROM entry b
                       WHERE b.conversation_id = a.conversation_id AND b.seq = a.seq + 1
                   )
               ) END,
               x.conversation_id, 0,
               'of its entries 1 to ' || x.last || ' only ' || x.entries || ' are there'
        FROM (
            SELECT e.conversation_id, count(*) AS entries, min(e.seq) AS first, max(e.seq) AS last
            FROM entry e WHERE 1 = 1 {e.conversation_id}
            GROUP BY e.conversation_id
        ) x JOIN lease l ON l.conversation_id = x.conversation_id
        WHERE x.entries <> x.last OR x.first <> 1
        """,
        decide=_RESTORE_ADVICE,
    ),
    sql_check(
        "last-seq",
        "The lease counts to the last entry.",
        """
        SELECT x.conversation_id, x.last_seq, x.conversation_id,
               CASE WHEN x.last_seq < x.last THEN 1 ELSE 0 END,
               'the lease counts to ' || x.last_seq || ', the last entry is ' || x.last
        FROM (
            SELECT l.conversation_id, l.last_seq,
                   (SELECT COALESCE(max(e.seq), 0) FROM entry e
                    WHERE e.conversation_id = l.conversation_id) AS last
            FROM lease l WHERE 1 = 1 {l.conversation_id}
        ) x
        WHERE x.last <> x.last_seq
        """,
        repair="have the lease count to the last entry",
        mend=_fix_last_seq,
        decide=f"the last entries are missing, or the count was changed: {_RESTORE_ADVICE}",
    ),
    sql_check(
        "entry-belongs",
        "An entry belongs to a session and, if it names one, to a turn of its conversation.",
        """
        SELECT e.conversation_id, e.seq, e.id, 0,
               'entry ' || e.id || ' names session ' || e.session_id || ' and turn '
               || COALESCE(e.turn_id, 'none') || ', of which one is not there'
        FROM entry e JOIN lease l ON l.conversation_id = e.conversation_id
        WHERE (NOT EXISTS (
                SELECT 1 FROM session s
                WHERE s.id = e.session_id AND s.conversation_id = e.conversation_id
            ) OR (e.turn_id IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM turn t WHERE t.id = e.turn_id
                    AND t.conversation_id = e.conversation_id
            ))) {e.conversation_id}
        """,
        decide="restore a backup that has them; the entry itself can be read",
        refused=True,
    ),
)
