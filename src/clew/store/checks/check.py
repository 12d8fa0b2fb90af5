"""What a check is: a sentence, the rows that break it, and what is surely right to do then."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString, Protocol, cast

from clew.core.ids import ConversationId

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.store.contract import Row, Tx

#: So many findings of one check are told at once; a repair goes on until there are none.
MOST = 1000
_LIMITED: LiteralString = "{} LIMIT 1000"
#: Where one finding is looked for again, ``{s.conversation_id}`` in a text stands for "and only in
#: its conversation", ``{=s.id}`` for "and only its subject".
_ONLY = re.compile(r"\{(=?)([\w.]+)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """One place where a sentence does not hold."""

    conversation: ConversationId | None
    #: The entry, where there is one.
    seq: int | None
    #: The id of the row that is wrong.
    subject: str
    #: There is one thing that can be right, and ``Check.mend`` does it.
    sure: bool
    #: What is wrong, for people.
    detail: str


class Look(Protocol):
    """Looks everywhere, or only whether one finding is still to be found."""

    def __call__(self, t: Tx, again: Found | None = None, /) -> list[Found]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """
    One sentence about the store, and what follows where it does not hold.

    Every process may write while it looks: a check reads one snapshot, and what a transaction
    leaves behind never breaks its sentence, also in the middle of a turn.
    """

    name: LiteralString
    #: What has to hold.
    says: str
    look: Look
    #: What a repair does, with ``{subject}``, ``{conversation}`` and ``{seq}``; ``None``: nothing
    #: is surely right.
    repair: str | None = None
    #: Does it, in the transaction that has looked again.
    mend: Callable[[Tx, Found], object] | None = None
    #: What a person can decide where no repair is sure.
    decide: str | None = None
    #: The statement behind ``look``, where one statement is all there is.
    sql: LiteralString | None = None
    #: The schema refuses it too: only damage, or another program, can bring it about.
    refused: bool = False

    def remedy(self, found: Found) -> str | None:
        """What ``mend`` would do; ``None`` where a person has to decide."""
        if self.repair is None or not found.sure:
            return None
        return self.repair.format(
            subject=found.subject, conversation=found.conversation, seq=found.seq
        )


class ByStatement:
    """
    A statement whose rows are ``conversation, seq, subject, sure, detail``.

    It reads one snapshot by itself.
    """

    def __init__(self, sql: LiteralString) -> None:
        self.everywhere: LiteralString = cast("LiteralString", _ONLY.sub("", sql))
        self._by_subject = "{=" in sql
        self._one: LiteralString = cast("LiteralString", _ONLY.sub(r" AND \2 = $1 ", sql))

    def __call__(self, t: Tx, again: Found | None = None, /) -> list[Found]:
        if again is not None:
            key = again.subject if self._by_subject else again.conversation
            return [found_in(row) for row in t.all(self._one, key)]
        return [found_in(row) for row in t.all(_LIMITED.format(self.everywhere))]


def found_in(row: Row) -> Found:
    """From ``conversation, seq, subject, sure, detail``."""
    conversation, seq, subject, sure, detail = row
    return Found(
        conversation=None if conversation is None else ConversationId(conversation),
        seq=seq,
        subject=subject,
        sure=bool(sure),
        detail=detail,
    )


def statement(
    name: LiteralString,
    says: str,
    sql: LiteralString,
    *,
    repair: str | None = None,
    mend: Callable[[Tx, Found], object] | None = None,
    decide: str | None = None,
    refused: bool = False,
) -> Check:
    """A check that is one statement."""
    look = ByStatement(sql)
    return Check(
        name=name,
        says=says,
        look=look,
        repair=repair,
        mend=mend,
        decide=decide,
        sql=look.everywhere,
        refused=refused,
    )


def mend_again(t: Tx, check: Check, found: Found) -> bool:
    """
    Repair what was found, if it is still so in this transaction; ``False`` if it is not.

    Whoever writes to the conversation is waited for, so that a turn under way is never taken for a
    fault.
    """
    assert check.mend is not None
    if found.conversation is not None:
        t.one("SELECT 1 FROM lease WHERE conversation_id = $1 @LOCK", found.conversation)
    for now in check.look(t, found):
        if now.subject == found.subject and now.sure:
            check.mend(t, now)
            if now.conversation is not None:
                t.wake(now.conversation)
            return True
    return False
