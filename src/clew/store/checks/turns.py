"""Turns, their tool calls and their approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.ids import TurnId
from clew.core.system_note import SystemNote
from clew.store.checks.check import Check, Violation, sql_check
from clew.store.transactions.approvals import deny_open_approvals

if TYPE_CHECKING:
    from clew.store.contract import Tx

_SUPERSEDED = "another turn began after it, and it had not ended"


def _fail_turn(t: Tx, found: Violation) -> None:
    t.execute(
        """
        UPDATE turn SET state = 'done', outcome = 'failed', error = $2,
            error_code = 'interrupted', finished_at = $3
        WHERE id = $1
        """,
        found.subject,
        _SUPERSEDED,
        t.now,
    )
    deny_open_approvals(t, TurnId(found.subject), note=SystemNote.TURN_ENDED)


def _align_state(t: Tx, found: Violation) -> None:
    t.execute(
        """
        UPDATE turn SET
            state = CASE WHEN outcome IS NULL THEN state ELSE 'done' END,
            finished_at = CASE WHEN outcome IS NULL THEN NULL
                               ELSE COALESCE(finished_at, started_at) END,
            error = CASE WHEN outcome IS NULL THEN NULL ELSE error END
        WHERE id = $1
        """,
        found.subject,
    )


def _set_first_seq(t: Tx, found: Violation) -> None:
    t.execute(
        """
        UPDATE turn SET first_seq = (
            SELECT min(e.seq) FROM entry e WHERE e.conversation_id = $2 AND e.turn_id = $1
        ) WHERE id = $1
        """,
        found.subject,
        found.conversation,
    )


def _fix_input_outcomes(t: Tx, found: Violation) -> None:
    t.execute(
        """
        UPDATE inbox SET step = NULL, outcome = CASE
            WHEN n = (SELECT min(n) FROM inbox WHERE turn_id = $1 AND outcome <> 'steered')
            THEN 'turn' ELSE 'merged' END
        WHERE turn_id = $1 AND outcome <> 'steered'
        """,
        found.subject,
    )


CHECKS: tuple[Check, ...] = (
    sql_check(
        "one-unfinished-turn",
        "Only the last turn of a conversation may be unfinished.",
        """
        SELECT t.conversation_id, t.first_seq, t.id, 1,
               'turn ' || t.id || ' is unfinished, and another one began after it'
        FROM turn t
        WHERE t.state <> 'done' AND t.outcome IS NULL AND EXISTS (
            SELECT 1 FROM turn o
            WHERE o.conversation_id = t.conversation_id
              AND (o.first_seq > t.first_seq OR (o.first_seq = t.first_seq AND o.id > t.id))
        ) {t.conversation_id}
        """,
        repair="end {subject} as failed: it cannot continue",
        mend=_fail_turn,
    ),
    sql_check(
        "turn-state",
        "A turn that is done has an outcome and an end, and no other turn has.",
        """
        SELECT t.conversation_id, t.first_seq, t.id,
               CASE WHEN t.state = 'done' AND t.outcome IS NULL THEN 0 ELSE 1 END,
               'turn ' || t.id || ' is ' || t.state || ', its outcome is '
               || COALESCE(t.outcome, 'missing') || ', its end '
               || CASE WHEN t.finished_at IS NULL THEN 'missing' ELSE 'stored' END
        FROM turn t
        WHERE ((t.state = 'done') <> (t.outcome IS NOT NULL)
            OR (t.state = 'done') <> (t.finished_at IS NOT NULL)
            OR (t.error IS NOT NULL AND t.outcome IS NULL)) {t.conversation_id}
        """,
        repair="take {subject} as done if it has an outcome, and as unfinished if it has none",
        mend=_align_state,
        decide="read the last entries of the turn: whether it was answered is in them",
        refused=True,
    ),
    sql_check(
        "turn-begin",
        "A turn begins with the messages of its person.",
        """
        SELECT x.conversation_id, x.first_seq, x.id,
               CASE WHEN f.role = 'user' THEN 1 ELSE 0 END,
               'turn ' || x.id || ' says that it began with entry ' || x.first_seq
               || ', which is no message of its person'
        FROM (
            WITH wrong AS MATERIALIZED (
                SELECT t.id, t.conversation_id, t.first_seq
                FROM turn t JOIN lease l ON l.conversation_id = t.conversation_id
                LEFT JOIN entry e ON e.conversation_id = t.conversation_id AND e.seq = t.first_seq
                WHERE ((e.seq IS NULL AND t.first_seq > l.last_seq)
                    OR (e.seq IS NOT NULL
                        AND (COALESCE(e.turn_id, '') <> t.id OR COALESCE(e.role, '') <> 'user')))
                  {t.conversation_id}
            )
            SELECT w.id, w.conversation_id, w.first_seq,
                   (SELECT min(o.seq) FROM entry o
                    WHERE o.conversation_id = w.conversation_id AND o.turn_id = w.id) AS first
            FROM wrong w
        ) x LEFT JOIN entry f ON f.conversation_id = x.conversation_id AND f.seq = x.first
        """,
        repair="have {subject} begin with the first of its entries",
        mend=_set_first_seq,
        decide="leave it: the log is complete; or restore a backup",
    ),
    sql_check(
        "turn-inputs",
        "A turn has a message of its person for each input that it took, and one input began it.",
        """
        SELECT t.conversation_id, t.first_seq, t.id,
               CASE WHEN COALESCE(x.said, 0) = COALESCE(y.inputs, 0)
                     AND COALESCE(y.inputs, 0) > COALESCE(y.steered, 0) THEN 1 ELSE 0 END,
               'turn ' || t.id || ' has ' || COALESCE(x.said, 0) || ' messages of its person and '
               || COALESCE(y.inputs, 0) || ' inputs, of which ' || COALESCE(y.begun, 0)
               || ' began it'
        FROM turn t JOIN lease l ON l.conversation_id = t.conversation_id
        LEFT JOIN (
            SELECT e.turn_id, count(*) AS said FROM entry e
            WHERE e.turn_id IS NOT NULL AND e.role = 'user' {e.conversation_id}
            GROUP BY e.turn_id
        ) x ON x.turn_id = t.id
        LEFT JOIN (
            SELECT o.id AS turn_id, count(*) AS inputs,
                   count(CASE WHEN i.outcome = 'turn' THEN 1 END) AS begun,
                   count(CASE WHEN i.outcome = 'steered' THEN 1 END) AS steered
            FROM turn o JOIN inbox i ON i.turn_id = o.id WHERE 1 = 1 {o.conversation_id}
            GROUP BY o.id
        ) y ON y.turn_id = t.id
        WHERE (COALESCE(x.said, 0) <> COALESCE(y.inputs, 0) OR COALESCE(y.begun, 0) <> 1)
          {t.conversation_id}
        """,
        repair="of the inputs of {subject} that did not steer, take the first as its beginning",
        mend=_fix_input_outcomes,
        decide="compare the messages with the log (clew sessions show), and send those again that "
        "are missing",
    ),
    sql_check(
        "call-step",
        "A tool call belongs to a step that was stored.",
        """
        SELECT t.conversation_id, t.first_seq, t.id, 1,
               'turn ' || t.id || ' counts ' || t.steps || ' steps, and has calls of step '
               || max(j.step)
        FROM journal j JOIN turn t ON t.id = j.turn_id
        WHERE j.step > t.steps {t.conversation_id}
        GROUP BY t.conversation_id, t.first_seq, t.id, t.steps
        """,
        repair="have {subject} count the steps whose calls were begun",
        mend=lambda t, found: t.execute(
            "UPDATE turn SET steps = (SELECT max(step) FROM journal WHERE turn_id = $1) "
            "WHERE id = $1",
            found.subject,
        ),
    ),
    sql_check(
        "call-once",
        "A call that must not run twice has run once.",
        """
        SELECT j.conversation_id, CAST(NULL AS BIGINT), j.call_id, 0,
               'call ' || j.call_id || ' of ' || j.tool || ' ran ' || j.runs || ' times, '
               || 'and must not run twice'
        FROM journal j WHERE j.effect = 'once' AND j.runs > 1 {=j.call_id}
        """,
        decide="check what the tool did, and undo the repetitions",
    ),
    sql_check(
        "call-result",
        "A call has a status, a result and an end, or none of them.",
        """
        SELECT j.conversation_id, CAST(NULL AS BIGINT), j.call_id,
               CASE WHEN (j.status IS NULL) = (j.result IS NULL)
                     AND (j.result IS NULL) = (j.format IS NULL) THEN 1 ELSE 0 END,
               'call ' || j.call_id || ' of ' || j.tool || ' has a part of its result only'
        FROM journal j
        WHERE ((j.status IS NULL) <> (j.result IS NULL)
            OR (j.status IS NULL) <> (j.finished_at IS NULL)
            OR (j.result IS NULL) <> (j.format IS NULL)) {=j.call_id}
        """,
        repair="give {subject} an end if it has a result, and take it away if it has none",
        mend=lambda t, found: t.execute(
            """
            UPDATE journal SET finished_at = CASE WHEN status IS NULL THEN NULL ELSE started_at END
            WHERE conversation_id = $1 AND call_id = $2
              AND (status IS NULL) <> (finished_at IS NULL)
            """,
            found.conversation,
            found.subject,
        ),
        decide="check what the tool did; the model is told that the outcome is unknown",
        refused=True,
    ),
    sql_check(
        "approval-open",
        "No question is open whose turn is done.",
        """
        SELECT a.conversation_id, CAST(NULL AS BIGINT), a.id, 1,
               'question ' || a.id || ' about ' || a.tool || ' is open, and its turn is done'
        FROM approval a JOIN turn t ON t.id = a.turn_id
        WHERE a.state = 'open' AND t.state = 'done' {=a.id}
        """,
        repair="answer {subject} with no: the turn has ended",
        mend=lambda t, found: t.execute(
            """
            UPDATE approval SET state = 'denied', answered_at = $2, note = $3
            WHERE id = $1 AND state = 'open'
            """,
            found.subject,
            t.now,
            SystemNote.TURN_ENDED.value,
        ),
    ),
    sql_check(
        "approval-answer",
        "A question that was answered has a time of its answer, and an open one has none.",
        """
        SELECT a.conversation_id, CAST(NULL AS BIGINT), a.id, 1,
               'question ' || a.id || ' is ' || a.state || CASE WHEN a.answered_at IS NULL
                   THEN ', without a time' ELSE ', with a time of its answer' END
        FROM approval a WHERE (a.state = 'open') <> (a.answered_at IS NULL) {=a.id}
        """,
        repair="go by the state of {subject}: give it the time when it was asked, or none",
        mend=lambda t, found: t.execute(
            """
            UPDATE approval SET answered_at = CASE WHEN state = 'open' THEN NULL ELSE asked_at END
            WHERE id = $1
            """,
            found.subject,
        ),
        refused=True,
    ),
)
