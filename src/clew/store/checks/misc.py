"""Titles, enumeration values, and leftovers of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString, cast

from clew.core.approval import ApprovalState
from clew.core.conversation import TitledBy
from clew.core.delivery import DeliveryKind, DeliveryState
from clew.core.double_text import DoubleText
from clew.core.effect import Effect
from clew.core.inbox import InboxKind, InboxOutcome
from clew.core.journal import CallStatus
from clew.core.turn import StopRequest, TurnOutcome, TurnState
from clew.store.checks.check import Check, Violation, sql_check
from clew.store.transactions.locks import delete_abandoned_locks, list_abandoned_locks
from clew.store.transactions.owners import end_lost_owners, list_lost_owners

if TYPE_CHECKING:
    import enum
    from collections.abc import Iterator

    from clew.store.contract import Tx

#: Columns whose values become members of an enumeration: an unknown one cannot even be read.
_ENUM_COLUMNS: tuple[tuple[LiteralString, LiteralString, LiteralString, type[enum.Enum]], ...] = (
    ("turn", "id", "state", TurnState),
    ("turn", "id", "outcome", TurnOutcome),
    ("turn", "id", "stop", StopRequest),
    ("inbox", "id", "kind", InboxKind),
    ("inbox", "id", "outcome", InboxOutcome),
    ("inbox", "id", "double_text", DoubleText),
    ("journal", "call_id", "effect", Effect),
    ("journal", "call_id", "status", CallStatus),
    ("approval", "id", "state", ApprovalState),
    ("delivery", "id", "state", DeliveryState),
    ("delivery", "id", "kind", DeliveryKind),
)


def _quote_values(words: type[enum.Enum]) -> LiteralString:
    return cast("LiteralString", ", ".join(f"'{word.value}'" for word in words))


def _unknown_value_statements() -> Iterator[LiteralString]:
    for table, name, column, words in _ENUM_COLUMNS:
        # "auto" is a setting: a stored input has one of the other values.
        yield f"""
            SELECT o.conversation_id, o.{name} AS id, '{table}.{column}' AS place,
                   o.{column} AS word
            FROM {table} o WHERE o.{column} NOT IN ({_quote_values(words)}) {{o.conversation_id}}
        """
    yield f"""
        SELECT o.id, o.id, 'conversation.titled_by', o.titled_by FROM conversation o
        WHERE o.titled_by NOT IN ({_quote_values(TitledBy)}) {{o.id}}
    """


def _find_leftover_locks(t: Tx, again: Violation | None = None) -> list[Violation]:
    return [
        Violation(
            conversation=None,
            seq=None,
            subject=name,
            repairable=True,
            detail=f"lock {name} was never released by {holder}",
        )
        for name, holder in list_abandoned_locks(t)
        if again is None or again.subject == name
    ]


def _find_lost_owners(t: Tx, again: Violation | None = None) -> list[Violation]:
    return [
        Violation(
            conversation=None,
            seq=None,
            subject=owner,
            repairable=True,
            detail=f"process {owner} began more than 7 days ago, died, and was never recorded as "
            "ended",
        )
        for owner in list_lost_owners(t)
        if again is None or again.subject == owner
    ]


CHECKS: tuple[Check, ...] = (
    sql_check(
        "title-unique",
        "In one scope a title belongs to one conversation.",
        """
        SELECT c.id, CAST(NULL AS BIGINT), c.id,
               CASE WHEN c.titled_by = 'model' THEN 1 ELSE 0 END,
               'another conversation has the title “' || c.title || '” too'
        FROM conversation c
        WHERE c.title IS NOT NULL AND EXISTS (
            SELECT 1 FROM conversation o
            WHERE o.scope = c.scope AND o.title = c.title AND o.id <> c.id
              AND (o.titled_by = 'person' AND c.titled_by = 'model'
                OR o.titled_by = c.titled_by AND o.id < c.id)
        ) {c.id}
        """,
        repair="take the title of {subject} away: it was given automatically, and a new one is "
        "made",
        mend=lambda t, found: t.execute(
            "UPDATE conversation SET title = NULL, titled_by = NULL WHERE id = $1", found.subject
        ),
        decide="give one of them another title with clew sessions rename",
        refused=True,
    ),
    sql_check(
        "title-by",
        "The origin of a title is recorded.",
        """
        SELECT c.id, CAST(NULL AS BIGINT), c.id, 1,
               CASE WHEN c.title IS NULL THEN 'it has no title, but somebody who gave it'
                    ELSE 'it has a title that nobody gave' END
        FROM conversation c WHERE (c.title IS NULL) <> (c.titled_by IS NULL) {c.id}
        """,
        repair="take the title of {subject} as a person's, which nothing replaces",
        mend=lambda t, found: t.execute(
            """
            UPDATE conversation SET titled_by = CASE WHEN title IS NULL THEN NULL ELSE 'person' END
            WHERE id = $1
            """,
            found.subject,
        ),
        refused=True,
    ),
    sql_check(
        "known-words",
        "States, kinds and outcomes have known values.",
        f"""
        SELECT x.conversation_id, CAST(NULL AS BIGINT), x.id, 0,
               x.id || ' has “' || x.word || '” as ' || x.place
               || ', which is none of the known ones'
        FROM ({" UNION ALL ".join(_unknown_value_statements())}) x
        """,
        decide="upgrade Clew if a newer one wrote it; else restore a backup",
        refused=True,
    ),
    Check(
        name="lock-left",
        description="A compression lock that ran out is taken again or released within a day.",
        find=_find_leftover_locks,
        repair="release {subject}",
        repair_fn=lambda t, found: delete_abandoned_locks(t),
    ),
    Check(
        name="owner-left",
        description="A process that died is recorded as ended within seven days.",
        find=_find_lost_owners,
        repair="record {subject} as ended",
        repair_fn=lambda t, found: end_lost_owners(t),
    ),
)
