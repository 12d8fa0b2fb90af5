"""Inputs and their keys: each is stored, and has one outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.checks.check import Check, Violation, sql_check
from clew.store.transactions.inbox import DEDUPE_DAYS

if TYPE_CHECKING:
    from clew.store.contract import Tx

_DAY_MS = 24 * 3600 * 1000


def _set_dedupe_expiry(t: Tx, found: Violation) -> None:
    t.execute(
        """
        UPDATE dedupe SET expires_at = (
            SELECT b.deleted_at FROM tombstone b WHERE b.conversation_id = dedupe.conversation_id
        ) + $2
        WHERE conversation_id = $1 AND inbox_id = $3 AND expires_at IS NULL
        """,
        found.conversation,
        DEDUPE_DAYS * _DAY_MS,
        found.subject,
    )


CHECKS: tuple[Check, ...] = (
    sql_check(
        "input-outcome",
        "An input has one outcome with its time, turn and step, or none of them.",
        """
        SELECT i.conversation_id, CAST(NULL AS BIGINT), i.id,
               CASE WHEN (i.turn_id IS NOT NULL)
                       = (COALESCE(i.outcome, '') IN ('turn', 'merged', 'steered'))
                     AND (i.step IS NOT NULL) = (COALESCE(i.outcome, '') = 'steered')
               THEN 1 ELSE 0 END,
               'input ' || i.id || ' has the outcome ' || COALESCE(i.outcome, 'none')
               || ', the turn ' || COALESCE(i.turn_id, 'none')
               || ', the step ' || COALESCE(CAST(i.step AS TEXT), 'none')
               || CASE WHEN i.resolved_at IS NULL THEN ' and no time' ELSE ' and a time' END
        FROM inbox i
        WHERE ((i.outcome IS NULL) <> (i.resolved_at IS NULL)
            OR (i.turn_id IS NOT NULL)
               <> (COALESCE(i.outcome, '') IN ('turn', 'merged', 'steered'))
            OR (i.step IS NOT NULL) <> (COALESCE(i.outcome, '') = 'steered')) {=i.id}
        """,
        repair="go by the outcome of {subject}: give it the time when it was received, or none",
        mend=lambda t, found: t.execute(
            """
            UPDATE inbox
            SET resolved_at = CASE WHEN outcome IS NULL THEN NULL ELSE received_at END
            WHERE id = $1
            """,
            found.subject,
        ),
        decide="compare it with the log of its conversation, and send it again if it is not there",
        refused=True,
    ),
    sql_check(
        "input-kind",
        "Only messages and completions lead to turns, only messages are rejected, and no message "
        "is executed.",
        """
        SELECT i.conversation_id, CAST(NULL AS BIGINT), i.id, 0,
               'input ' || i.id || ' is a ' || i.kind || ', its outcome is ' || i.outcome
        FROM inbox i
        WHERE ((i.kind = 'message' AND i.outcome = 'executed')
            OR (i.kind NOT IN ('message', 'completion')
                AND i.outcome IN ('turn', 'merged', 'steered'))
            OR (i.kind <> 'message' AND i.outcome = 'rejected'))
          {=i.id}
        """,
        decide="leave it: nothing is done with it any more",
    ),
    sql_check(
        "input-turn",
        "An input that led to a turn names one of its conversation.",
        """
        SELECT i.conversation_id, CAST(NULL AS BIGINT), i.id, 0,
               'input ' || i.id || ' names turn ' || i.turn_id || ', which is not there'
        FROM inbox i JOIN lease l ON l.conversation_id = i.conversation_id
        WHERE i.turn_id IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM turn t WHERE t.id = i.turn_id AND t.conversation_id = i.conversation_id
        ) {=i.id}
        """,
        decide="read the log of its conversation: if the message is not in it, send it again",
        refused=True,
    ),
    sql_check(
        "completion-entries",
        "A turn has an entry that no person wrote for each completion that it took, and no other.",
        """
        SELECT t.conversation_id, t.first_seq, t.id, 0,
               'turn ' || t.id || ' took ' || COALESCE(i.ended, 0) || ' completions, and has '
               || COALESCE(e.told, 0) || ' entries that no person wrote'
        FROM turn t JOIN lease l ON l.conversation_id = t.conversation_id
        LEFT JOIN (
            SELECT turn_id, count(*) AS told FROM entry
            WHERE turn_id IS NOT NULL AND role = 'user' AND message LIKE '%"clew_cause":%'
            GROUP BY turn_id
        ) e ON e.turn_id = t.id LEFT JOIN (
            SELECT turn_id, count(*) AS ended FROM inbox
            WHERE kind = 'completion' AND turn_id IS NOT NULL GROUP BY turn_id
        ) i ON i.turn_id = t.id
        WHERE COALESCE(e.told, 0) <> COALESCE(i.ended, 0) {t.conversation_id}
        """,
        decide="read the turn in the log: what its completions told may be there as the words of "
        "a person",
    ),
    sql_check(
        "event-stored",
        "A platform's event that was acknowledged is stored, unless it was deleted.",
        """
        SELECT d.conversation_id, CAST(NULL AS BIGINT), d.inbox_id,
               CASE WHEN b.conversation_id IS NULL THEN 0 ELSE 1 END,
               'an event led to input ' || d.inbox_id || ', which is not there'
        FROM dedupe d LEFT JOIN tombstone b ON b.conversation_id = d.conversation_id
        WHERE d.expires_at IS NULL
          AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.id = d.inbox_id) {d.conversation_id}
        """,
        repair="forget the event 30 days after its conversation was deleted",
        mend=_set_dedupe_expiry,
        decide="ask the sender to send it again: it was lost",
    ),
    sql_check(
        "key-input",
        "A caller's key that led to an input leads to one that is stored.",
        """
        SELECT k.conversation_id, CAST(NULL AS BIGINT), k.inbox_id,
               CASE WHEN c.id IS NULL OR c.deleting_at IS NOT NULL THEN 1 ELSE 0 END,
               'a caller''s key led to input ' || k.inbox_id || ', which is not there'
        FROM idempotency k LEFT JOIN conversation c ON c.id = k.conversation_id
        WHERE k.inbox_id IS NOT NULL AND (c.id IS NULL OR c.deleting_at IS NOT NULL
            OR NOT EXISTS (SELECT 1 FROM inbox i WHERE i.id = k.inbox_id)) {k.conversation_id}
        """,
        repair="forget the key with its answer: its conversation was deleted",
        mend=lambda t, found: t.execute(
            "DELETE FROM idempotency WHERE conversation_id = $1 AND inbox_id = $2",
            found.conversation,
            found.subject,
        ),
        decide="wait: the key is forgotten 7 days after it came",
    ),
    sql_check(
        "key-answer",
        "A caller's key has a status with an answer, or neither.",
        """
        SELECT k.conversation_id, CAST(NULL AS BIGINT), COALESCE(k.inbox_id, 'none'),
               CASE WHEN k.conversation_id IS NULL OR k.inbox_id IS NULL THEN 0 ELSE 1 END,
               'a caller''s key that led to input ' || COALESCE(k.inbox_id, 'none')
               || CASE WHEN k.answer IS NULL THEN ' has a status without an answer'
                  ELSE ' has an answer without a status' END
        FROM idempotency k WHERE (k.status IS NULL) <> (k.answer IS NULL) {k.conversation_id}
        """,
        repair="have the answer of {subject} made again from its turn",
        mend=lambda t, found: t.execute(
            """
            UPDATE idempotency SET status = NULL, answer = NULL
            WHERE conversation_id = $1 AND inbox_id = $2 AND (status IS NULL) <> (answer IS NULL)
            """,
            found.conversation,
            found.subject,
        ),
        decide="wait: the key is forgotten 7 days after it came",
        refused=True,
    ),
)
