"""Proposals: facts that a model would keep, which wait for a person's answer."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, LiteralString

from clew.errors import NotFound, UsageError
from clew.features.memory import facts, writing
from clew.features.memory.facts import FactKind, FactWriter
from clew.record import Record
from clew.store.records import RecordQuery

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.features.memory.facts import Fact
    from clew.features.memory.writing import NewFact
    from clew.store.contract import Tx

#: Proposals of a scope that wait; further ones are left out.
MAX_WAITING: Final = 50


class ProposalState(enum.Enum):
    PROPOSED = "proposed"
    ACCEPTED = "accepted"  #: it is a fact
    DECLINED = "declined"


class Proposal(Record):
    """A fact that is proposed in a scope."""

    id: str
    scope: Scope
    number: int
    kind: FactKind
    #: ``None`` once it is answered.
    text: str | None
    #: By which the same text is found, also after it was declined.
    text_key: str | None
    state: ProposalState
    told: int
    replaces: int | None
    conversation: ConversationId
    seq: int | None
    source_hash: str | None
    created_at: int


_COLUMNS: Final[LiteralString] = (
    "id, scope, number, kind, text, text_key, state, told, replaces, conversation, seq,"
    " source_hash, created_at"
)
PROPOSALS: Final = RecordQuery(
    Proposal,
    f"SELECT {_COLUMNS} FROM memory_proposal",
    {"kind": FactKind, "state": ProposalState},
)


def list_waiting(t: Tx, scope: Scope) -> list[Proposal]:
    """Return the proposals of a scope that wait for an answer."""
    return PROPOSALS.fetch_all(t, "WHERE scope = $1 AND state = 'proposed' ORDER BY number", scope)


def list_untold(t: Tx, scope: Scope) -> list[Proposal]:
    """Return the proposals of a scope of which nobody was told."""
    return [one for one in list_waiting(t, scope) if not one.told]


def mark_told(t: Tx, told: Iterable[Proposal]) -> None:
    """Record that a person was told of proposals."""
    for one in told:
        t.execute("UPDATE memory_proposal SET told = 1 WHERE id = $1", one.id)


def propose(t: Tx, given: NewFact) -> bool:
    """
    Store a proposal, unless its text is known, was proposed before, or too many wait.

    :raises UsageError: if it cannot be a fact
    """
    text = writing.clean_text(given.text)
    key = writing.make_text_key(text)
    writing.lock_scope(t, given.scope)
    is_known = facts.find_same(t, given.scope, key) is not None or t.exists(
        "SELECT 1 FROM memory_proposal WHERE id = $1 OR (scope = $2 AND text_key = $3)",
        given.id,
        given.scope,
        key,
    )
    if is_known or len(list_waiting(t, given.scope)) >= MAX_WAITING:
        return False
    source = given.source
    assert source is not None
    t.execute(
        """
        INSERT INTO memory_proposal (
            id, scope, number, kind, text, text_key, state, replaces, conversation, seq,
            source_hash, created_at
        ) SELECT $1, $2, COALESCE(max(number), 0) + 1, $3, $4, $5, 'proposed', $6, $7, $8, $9, $10
        FROM memory_proposal WHERE scope = $2
        """,
        given.id, given.scope, given.kind.value, text, key, given.replaces, source.conversation,
        source.seq, source.hash, t.now,
    )  # fmt: skip
    return True


def get_waiting(t: Tx, scope: Scope, number: int) -> Proposal:
    """
    Return a proposal of a locked scope.

    :raises NotFound: if there is none that waits
    """
    writing.lock_scope(t, scope)
    found = PROPOSALS.fetch_one(
        t, "WHERE scope = $1 AND number = $2 AND state = 'proposed'", scope, number
    )
    if found is None:
        raise NotFound("proposal", str(number))
    return found


def accept(t: Tx, one: Proposal) -> Fact:
    """
    Make a fact of a proposal of a locked scope.

    :raises UsageError: if the scope is full
    """
    assert one.text is not None
    made = writing.remember(
        t,
        writing.NewFact(
            id=f"mem_{one.id.removeprefix('mpr_')}",
            scope=one.scope,
            text=one.text,
            kind=one.kind,
            written_by=FactWriter.AGENT,
            source=writing.FactSource(
                conversation=one.conversation, seq=one.seq, hash=one.source_hash
            ),
            replaces=_find_replaced(t, one),
        ),
    )
    _answer(t, one, ProposalState.ACCEPTED)
    return made


def _find_replaced(t: Tx, one: Proposal) -> int | None:
    """Return the number of the fact that it replaces, if that is still there."""
    active = {fact.number for fact in facts.list_active(t, one.scope)}
    return one.replaces if one.replaces in active else None


def decline(t: Tx, one: Proposal) -> None:
    """Erase a proposal of a locked scope; its text is not proposed again."""
    _answer(t, one, ProposalState.DECLINED)


def _answer(t: Tx, one: Proposal, state: ProposalState) -> None:
    # Of what was accepted the fact has the key, and loses it when it is forgotten.
    t.execute(
        """
        UPDATE memory_proposal SET state = $2, text = NULL,
            text_key = CASE WHEN $2 = 'declined' THEN text_key ELSE NULL END
        WHERE id = $1
        """,
        one.id,
        state.value,
    )


def erase_text(t: Tx, scope: Scope, texts: Iterable[str]) -> None:
    """Erase the proposals of a scope that have a forgotten text."""
    keys = {writing.make_text_key(text) for text in texts}
    for one in list_waiting(t, scope):
        if one.text_key in keys or any(text in (one.text or "") for text in texts):
            decline(t, one)
    for key in keys:
        t.execute(
            "UPDATE memory_proposal SET text_key = NULL WHERE scope = $1 AND text_key = $2",
            scope,
            key,
        )


def parse_numbers(words: Iterable[str]) -> list[int]:
    """
    Return the numbers of proposals as people write them.

    :raises UsageError: if one is none
    """
    found: list[int] = []
    for word in words:
        number = word.strip(",").removeprefix("#")
        if not (number.isascii() and number.isdigit() and len(number) < 10):
            raise UsageError(f"{word!r} is no number of a proposal: /memory proposed lists them")
        found.append(int(number))
    return list(dict.fromkeys(found))
