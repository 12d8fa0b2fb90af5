"""Sessions: one chain per conversation that ends at the head, each starting after the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.checks.check import Check, Violation, sql_check

if TYPE_CHECKING:
    from clew.store.contract import Tx

_RESTORE_ADVICE = "restore a backup, or save what is left with clew sessions export"

#: Both ends of a conversation's sessions: those without a predecessor, and without a successor.
_CHAIN_ENDS = """
    SELECT s.conversation_id,
           count(CASE WHEN s.predecessor IS NULL THEN 1 END) AS firsts,
           count(CASE WHEN n.id IS NULL THEN 1 END) AS ends,
           min(CASE WHEN n.id IS NULL THEN s.id END) AS last
    FROM session s LEFT JOIN session n ON n.predecessor = s.id
    WHERE 1 = 1 {s.conversation_id}
    GROUP BY s.conversation_id
"""


def _add_head(t: Tx, found: Violation) -> None:
    t.execute(
        """
        INSERT INTO head (conversation_id, session_id)
        SELECT s.conversation_id, s.id FROM session s
        WHERE s.conversation_id = $1
          AND NOT EXISTS (SELECT 1 FROM session n WHERE n.predecessor = s.id)
        """,
        found.conversation,
    )


def _move_head(t: Tx, found: Violation) -> None:
    t.execute(
        "UPDATE head SET session_id = $2 WHERE conversation_id = $1",
        found.conversation,
        found.subject,
    )


def _add_lease(t: Tx, found: Violation) -> None:
    # Above every fence ever issued, so that no earlier holder can still write.
    t.execute(
        """
        INSERT INTO lease (conversation_id, fence, last_seq, updated_at)
        SELECT id, $2, (SELECT COALESCE(max(seq), 0) FROM entry WHERE conversation_id = $1), $2
        FROM conversation WHERE id = $1
        """,
        found.conversation,
        t.now,
    )


def _free_lease(t: Tx, found: Violation) -> None:
    t.execute(
        """
        UPDATE lease SET owner = NULL, expires_at = NULL, fence = fence + 1
        WHERE conversation_id = $1
        """,
        found.conversation,
    )


def _end_session(t: Tx, found: Violation) -> None:
    t.execute(
        """
        UPDATE session
        SET ended_at = (SELECT n.opened_at FROM session n WHERE n.predecessor = session.id),
            end_reason = (SELECT n.opened_by FROM session n WHERE n.predecessor = session.id)
        WHERE id = $1
        """,
        found.subject,
    )


def _set_opened_seq(t: Tx, found: Violation) -> None:
    t.execute(
        """
        UPDATE session SET opened_seq = COALESCE(
            (SELECT min(e.seq) - 1 FROM entry e
             WHERE e.conversation_id = session.conversation_id AND e.session_id = session.id),
            (SELECT n.opened_seq FROM session n WHERE n.predecessor = session.id),
            (SELECT max(e.seq) FROM entry e WHERE e.conversation_id = session.conversation_id),
            0)
        WHERE id = $1
        """,
        found.subject,
    )


CHECKS: tuple[Check, ...] = (
    sql_check(
        "lease-row",
        "A conversation has a lease row, which counts its entries.",
        """
        SELECT c.id, CAST(NULL AS BIGINT), c.id,
               CASE WHEN (SELECT count(*) FROM entry e WHERE e.conversation_id = c.id) = x.last
                     AND x.last >= x.opened THEN 1 ELSE 0 END,
               'it has no lease row, so nothing can be written to it'
        FROM (
            SELECT id, deleting_at,
                (SELECT COALESCE(max(e.seq), 0) FROM entry e WHERE e.conversation_id = a.id)
                    AS last,
                (SELECT COALESCE(max(s.opened_seq), 0) FROM session s
                 WHERE s.conversation_id = a.id) AS opened
            FROM conversation a
            WHERE NOT EXISTS (SELECT 1 FROM lease l WHERE l.conversation_id = a.id) {a.id}
        ) x JOIN conversation c ON c.id = x.id
        WHERE x.deleting_at IS NULL
        """,
        repair="add the row, counting to its last entry, above every fence that was given",
        mend=_add_lease,
        decide=_RESTORE_ADVICE,
    ),
    sql_check(
        "lease-held",
        "A lease has an owner, an expiry and a fence, or neither owner nor expiry.",
        """
        SELECT l.conversation_id, CAST(NULL AS BIGINT), l.conversation_id, 1,
               'the lease of owner ' || COALESCE(l.owner, 'nobody') || ' has '
               || CASE WHEN l.fence <= 0 THEN 'no fence' WHEN l.owner IS NULL THEN 'an expiry'
                  ELSE 'no expiry' END
        FROM lease l
        WHERE ((l.owner IS NULL) <> (l.expires_at IS NULL)
            OR (l.owner IS NOT NULL AND l.fence <= 0)) {l.conversation_id}
        """,
        repair="free the lease; whoever holds it notices and takes it again",
        mend=_free_lease,
    ),
    sql_check(
        "one-chain",
        "The sessions of a conversation are one chain: one first, one successor each, one last.",
        f"""
        SELECT x.conversation_id, CAST(NULL AS BIGINT), x.conversation_id, 0,
               'its sessions are no chain: ' || x.firsts || ' have no predecessor, '
               || x.ends || ' no successor'
        FROM ({_CHAIN_ENDS}) x JOIN lease l ON l.conversation_id = x.conversation_id
        WHERE (x.firsts <> 1 OR x.ends <> 1)
        """,
        decide="decide which session continues: keep a copy of the store and restore a backup, or "
        "begin anew with a branch of the conversation (clew sessions branch)",
    ),
    sql_check(
        "head-row",
        "A conversation has a head.",
        f"""
        SELECT c.id, CAST(NULL AS BIGINT), c.id,
               CASE WHEN x.firsts = 1 AND x.ends = 1 THEN 1 ELSE 0 END,
               'no session is its head, so nothing can be read of it'
        FROM conversation c LEFT JOIN ({_CHAIN_ENDS}) x ON x.conversation_id = c.id
        WHERE c.deleting_at IS NULL
          AND NOT EXISTS (SELECT 1 FROM head h WHERE h.conversation_id = c.id) {{c.id}}
        """,
        repair="make the last session of its chain the head",
        mend=_add_head,
        decide=_RESTORE_ADVICE,
    ),
    sql_check(
        "head-last",
        "The head is the last session of the chain.",
        f"""
        SELECT h.conversation_id, CAST(NULL AS BIGINT), x.last, 1,
               'the head is ' || h.session_id || ', but ' || x.last || ' follows it'
        FROM head h JOIN ({_CHAIN_ENDS}) x ON x.conversation_id = h.conversation_id
        JOIN lease l ON l.conversation_id = h.conversation_id
        WHERE x.firsts = 1 AND x.ends = 1 AND x.last <> h.session_id {{h.conversation_id}}
        """,
        repair="make {subject} the head",
        mend=_move_head,
    ),
    sql_check(
        "ended-session",
        "A session that has a successor has ended, when and because that one opened.",
        """
        SELECT s.conversation_id, s.opened_seq, s.id, 1,
               'session ' || s.id || ' is open, though ' || n.id || ' follows it'
        FROM session s JOIN session n ON n.predecessor = s.id
        WHERE s.ended_at IS NULL
          AND 1 = (SELECT count(*) FROM session o WHERE o.predecessor = s.id)
          {s.conversation_id}
        """,
        repair="end {subject} when its successor opened, for the same reason",
        mend=_end_session,
    ),
    sql_check(
        "end-reason",
        "A session that has ended has a reason, and one that is open has none.",
        """
        SELECT s.conversation_id, s.opened_seq, s.id,
               CASE WHEN s.ended_at IS NULL THEN 1 ELSE 0 END,
               'session ' || s.id || CASE WHEN s.ended_at IS NULL
                   THEN ' is open and has the reason ' || s.end_reason
                   ELSE ' has ended without a reason' END
        FROM session s
        WHERE (s.ended_at IS NULL) <> (s.end_reason IS NULL) {s.conversation_id}
        """,
        repair="take the reason of {subject} away: it is open",
        mend=lambda t, found: t.execute(
            "UPDATE session SET end_reason = NULL WHERE id = $1 AND ended_at IS NULL",
            found.subject,
        ),
        decide="leave it: the reason is only shown, nothing depends on it",
        refused=True,
    ),
    sql_check(
        "session-begin",
        "A session begins right after the last entry before it.",
        """
        SELECT s.conversation_id, s.opened_seq, s.id, 1,
               'session ' || s.id || ' says that it opened after entry ' || s.opened_seq
               || ', where its entries do not begin'
        FROM (
            SELECT a.id, a.conversation_id, a.opened_seq, l.last_seq,
                   (SELECT COALESCE(max(o.seq), 0) FROM entry o
                    WHERE o.conversation_id = a.conversation_id) AS end_of_log
            FROM session a JOIN lease l ON l.conversation_id = a.conversation_id
            WHERE 1 = 1 {a.conversation_id}
        ) s
        LEFT JOIN session n ON n.predecessor = s.id
        LEFT JOIN entry q ON q.conversation_id = s.conversation_id AND q.seq = s.opened_seq
        LEFT JOIN entry p ON p.conversation_id = s.conversation_id AND p.seq = s.opened_seq + 1
        WHERE (q.session_id = s.id
            OR (COALESCE(p.session_id, '') <> s.id
                AND s.opened_seq <> COALESCE(n.opened_seq, s.end_of_log)))
          -- Entries that are missing are told by other checks.
          AND NOT (p.seq IS NULL AND s.opened_seq < s.end_of_log)
          AND NOT (s.opened_seq > s.end_of_log AND s.opened_seq <= s.last_seq)
        """,
        repair="have {subject} begin with its first entry, or where its successor begins",
        mend=_set_opened_seq,
    ),
    sql_check(
        "base-range",
        "A base names entries that were there when its session opened.",
        """
        SELECT s.conversation_id, b.last_seq, s.id, 0,
               'the base of session ' || s.id || ' names entries ' || b.first_seq || ' to '
               || b.last_seq || ', but it opened after entry ' || s.opened_seq
        FROM base_item b JOIN session s ON s.id = b.session_id
        JOIN lease l ON l.conversation_id = s.conversation_id
        WHERE (b.last_seq > s.opened_seq OR b.first_seq < 1 OR b.last_seq < b.first_seq)
          {s.conversation_id}
        """,
        decide="go back to an entry before it with clew sessions rewind, or restore a backup",
    ),
    sql_check(
        "base-once",
        "No entry occurs twice in a base.",
        """
        SELECT s.conversation_id, b.first_seq, s.id, 0,
               'the base of session ' || s.id || ' has entries ' || b.first_seq || ' to '
               || CASE WHEN a.last_seq < b.last_seq THEN a.last_seq ELSE b.last_seq END || ' twice'
        FROM base_item a JOIN base_item b ON b.session_id = a.session_id
          AND b.position > a.position AND a.first_seq <= b.last_seq AND b.first_seq <= a.last_seq
        JOIN session s ON s.id = a.session_id
        WHERE 1 = 1 {s.conversation_id}
        """,
        decide="go back to an entry before it with clew sessions rewind, or restore a backup",
    ),
    sql_check(
        "base-whole",
        "The items of a base are numbered without a gap, each a range or a message.",
        """
        SELECT s.conversation_id, s.opened_seq, s.id, 0,
               'the base of session ' || s.id || ' has ' || count(*)
               || ' items, the last is number ' || max(b.position)
        FROM base_item b JOIN session s ON s.id = b.session_id
        JOIN lease l ON l.conversation_id = s.conversation_id
        WHERE 1 = 1 {s.conversation_id}
        GROUP BY s.conversation_id, s.opened_seq, s.id
        HAVING max(b.position) <> count(*) - 1
            OR count(*) <> count(b.first_seq) + count(b.message)
        """,
        decide="go back to an entry before it with clew sessions rewind, or restore a backup",
    ),
)
