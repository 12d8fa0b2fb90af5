"""Definition of a check: an invariant, the rows that violate it, and the safe repair."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, LiteralString, Protocol, cast

from clew.core.ids import ConversationId
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.store.contract import Tx

#: Violations of one check that are reported at once; a repair continues until there are none.
MAX_VIOLATIONS = 1000
_LIMITED: LiteralString = "{} LIMIT 1000"
#: When one violation is checked again, ``{s.conversation_id}`` in a statement limits it to its
#: conversation, ``{=s.id}`` to its subject.
_RECHECK_FILTER = re.compile(r"\{(=?)([\w.]+)\}")


class Violation(Record):
    """Place where an invariant does not hold."""

    conversation: ConversationId | None
    #: The entry, if there is one.
    seq: int | None
    #: The id of the row that is wrong.
    subject: str
    #: Only one repair can be right, and ``Check.repair_fn`` does it.
    repairable: bool
    #: Description of the problem, for people.
    detail: str


class ViolationFinder(Protocol):
    """Function that finds all violations, or checks whether one still exists."""

    def __call__(self, t: Tx, again: Violation | None = None, /) -> list[Violation]: ...


class Check(Record):
    """
    Invariant of the store, and what to do where it does not hold.

    Other processes may write during a check: it reads one snapshot, and no transaction ever
    leaves the invariant broken, not even in the middle of a turn.
    """

    name: LiteralString
    #: The invariant.
    description: str
    find: ViolationFinder
    #: The effect of a repair, with ``{subject}``, ``{conversation}`` and ``{seq}``; ``None``: no
    #: repair is safe.
    repair: str | None = None
    #: Makes the repair, in the transaction that has checked again.
    repair_fn: Callable[[Tx, Violation], object] | None = None
    #: Advice where no repair is safe.
    manual_fix: str | None = None
    #: The statement behind ``find``, if it is a single one.
    sql: LiteralString | None = None
    #: The schema enforces it too: only damage, or another program, can violate it.
    schema_enforced: bool = False

    def describe_repair(self, found: Violation) -> str | None:
        """Return what ``repair_fn`` would do; ``None`` where a person has to decide."""
        if self.repair is None or not found.repairable:
            return None
        return self.repair.format(
            subject=found.subject, conversation=found.conversation, seq=found.seq
        )


class SqlViolationFinder:
    """
    Statement whose rows are ``conversation, seq, subject, repairable, detail``.

    A single statement reads one snapshot by itself.
    """

    def __init__(self, sql: LiteralString) -> None:
        self.everywhere: LiteralString = cast("LiteralString", _RECHECK_FILTER.sub("", sql))
        self._by_subject = "{=" in sql
        self._one: LiteralString = cast("LiteralString", _RECHECK_FILTER.sub(r" AND \2 = $1 ", sql))

    def __call__(self, t: Tx, again: Violation | None = None, /) -> list[Violation]:
        if again is not None:
            key = again.subject if self._by_subject else again.conversation
            return [violation_from_row(row) for row in t.fetch_all(self._one, key)]
        return [violation_from_row(row) for row in t.fetch_all(_LIMITED.format(self.everywhere))]


def violation_from_row(row: Sequence[Any]) -> Violation:
    """Build a violation from ``conversation, seq, subject, repairable, detail``."""
    conversation, seq, subject, sure, detail = row
    return Violation(
        conversation=None if conversation is None else ConversationId(conversation),
        seq=seq,
        subject=subject,
        repairable=bool(sure),
        detail=detail,
    )


def sql_check(
    name: LiteralString,
    says: str,
    sql: LiteralString,
    *,
    repair: str | None = None,
    mend: Callable[[Tx, Violation], object] | None = None,
    decide: str | None = None,
    refused: bool = False,
) -> Check:
    """Build a check that is one statement."""
    look = SqlViolationFinder(sql)
    return Check(
        name=name,
        description=says,
        find=look,
        repair=repair,
        repair_fn=mend,
        manual_fix=decide,
        sql=look.everywhere,
        schema_enforced=refused,
    )


def repair_if_confirmed(t: Tx, check: Check, found: Violation) -> bool:
    """
    Repair a violation if it is still there; return false if it is not.

    Waits for the current writer of the conversation, so that a running turn is never taken
    for a fault.
    """
    assert check.repair_fn is not None
    if found.conversation is not None:
        t.fetch_one("SELECT 1 FROM lease WHERE conversation_id = $1 @LOCK", found.conversation)
    for now in check.find(t, found):
        if now.subject == found.subject and now.repairable:
            check.repair_fn(t, now)
            if now.conversation is not None:
                t.notify(now.conversation)
            return True
    return False
