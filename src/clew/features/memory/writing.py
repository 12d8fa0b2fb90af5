"""Changes of facts: each takes the next version of its scope, and so none overtakes another."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from clew.core.search import fold_text
from clew.core.text import sanitize_text
from clew.errors import UsageError
from clew.features.memory import facts
from clew.features.memory.facts import Fact, FactChange, FactKind, FactState, FactWriter
from clew.features.memory.secret_detector import find_secret
from clew.record import Record, replace

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.store.contract import Tx

#: Characters of a fact.
MAX_TEXT: Final = 500
#: Facts of a scope.
MAX_FACTS: Final = 5_000


class FactSource(Record):
    """The entry that a fact was taken from."""

    conversation: ConversationId
    #: ``None`` if it was said beside the log, as by a chat command.
    seq: int | None = None
    hash: str | None = None


class NewFact(Record):
    """A fact as it is given."""

    #: The same id is stored once.
    id: str
    scope: Scope
    text: str
    kind: FactKind = FactKind.FACT
    written_by: FactWriter
    source: FactSource | None = None
    pinned: bool = False
    #: The number of the fact in whose place it is.
    replaces: int | None = None


def make_fact_id(operation: str) -> str:
    """Return the id of a new fact."""
    return f"mem_{operation.removeprefix('op_')}"


def clean_text(text: str) -> str:
    """
    Return the text of a fact on one line.

    :raises UsageError: if it is empty, too long, or holds a secret
    """
    cleaned = " ".join(sanitize_text(text).split())
    if not cleaned:
        raise UsageError("there is nothing to remember: give a sentence")
    if len(cleaned) > MAX_TEXT:
        raise UsageError(
            f"a fact is one sentence: this has {len(cleaned):,} characters, and {MAX_TEXT} may be"
        )
    if (secret := find_secret(cleaned)) is not None:
        raise UsageError(f"this holds {secret}, which is not remembered: leave it out")
    return cleaned


def remember(t: Tx, given: NewFact) -> Fact:
    """
    Store a fact; one that is known already is returned as it is.

    :raises UsageError: if it cannot be a fact, or the scope is full
    :raises NotFound: if there is none that it could replace
    """
    text = clean_text(given.text)
    lock_scope(t, given.scope)
    if (known := facts.find_fact(t, given.id)) is not None:
        return known
    before = None if given.replaces is None else _get_active(t, given.scope, given.replaces)
    if (known := facts.find_same(t, given.scope, make_text_key(text))) is not None:
        return known
    if before is None and facts.count_active(t, given.scope) >= MAX_FACTS:
        raise UsageError(f"{MAX_FACTS:,} facts are kept here already: forget some first")
    made = _make_fact(t, given, text, before)
    _insert(t, made)
    _record(t, made, FactChange.ADDED)
    if before is not None:
        _change(t, before, FactChange.REPLACED, given.written_by, state=FactState.REPLACED)
    return made


def _make_fact(t: Tx, given: NewFact, text: str, before: Fact | None) -> Fact:
    source = given.source
    return Fact(
        id=given.id,
        scope=given.scope,
        number=_take_number(t, given.scope),
        kind=given.kind,
        text=text,
        text_key=make_text_key(text),
        state=FactState.ACTIVE,
        pinned=int(given.pinned) if before is None else max(int(given.pinned), before.pinned),
        version=_take_version(t, given.scope),
        written_by=given.written_by,
        conversation=None if source is None else source.conversation,
        seq=None if source is None else source.seq,
        source_hash=None if source is None else source.hash,
        replaces=None if before is None else before.id,
        created_at=t.now,
        uses=0 if before is None else before.uses,
        used_at=None,
    )


def forget(t: Tx, fact: Fact, *, written_by: FactWriter) -> list[Fact]:
    """
    Erase the text of a fact, and of those in whose place it is; return them as they were.

    What is forgotten already changes nothing.
    """
    lock_scope(t, fact.scope)
    found = facts.find_fact(t, fact.id)
    assert found is not None
    erased = [
        one
        for one in (found, *facts.list_replaced(t, found))
        if one.state is not FactState.FORGOTTEN
    ]
    for one in erased:
        _change(
            t,
            one,
            FactChange.FORGOTTEN,
            written_by,
            state=FactState.FORGOTTEN,
            text=None,
            text_key=None,
        )
    if erased:
        # What was said before is not read for facts any more.
        t.execute("UPDATE memory_scope SET forgotten_at = $2 WHERE scope = $1", fact.scope, t.now)
    return erased


def edit(t: Tx, fact: Fact, text: str, *, written_by: FactWriter) -> Fact:
    """
    Change the text of a fact, whose number and source stay.

    ``fact`` is what the writer has seen.

    :raises UsageError: if it has changed since, is not active, or the text cannot be one
    """
    cleaned = clean_text(text)
    current = _lock_active(t, fact)
    if current.version != fact.version:
        raise UsageError(f"fact {fact.number} has changed meanwhile: {current.text}")
    return _change(
        t, current, FactChange.EDITED, written_by, text=cleaned, text_key=make_text_key(cleaned)
    )


def pin(t: Tx, fact: Fact, *, on: bool, written_by: FactWriter) -> Fact:
    """
    Have every session told a fact, or no longer.

    :raises UsageError: if it is not active
    """
    current = _lock_active(t, fact)
    if bool(current.pinned) == on:
        return current
    change = FactChange.PINNED if on else FactChange.UNPINNED
    return _change(t, current, change, written_by, pinned=int(on))


def mark_used(t: Tx, used: list[Fact]) -> None:
    """Count that facts were recalled."""
    for fact in used:
        t.execute(
            "UPDATE memory_fact SET uses = uses + 1, used_at = $2 WHERE id = $1", fact.id, t.now
        )


def lock_scope(t: Tx, scope: Scope) -> None:
    """Have no other transaction change a scope until the commit."""
    t.execute(
        "INSERT INTO memory_scope (scope, version, last_number) VALUES ($1, 0, 0)"
        " ON CONFLICT DO NOTHING",
        scope,
    )
    t.fetch_one("SELECT 1 FROM memory_scope WHERE scope = $1 @LOCK", scope)


def _lock_active(t: Tx, fact: Fact) -> Fact:
    lock_scope(t, fact.scope)
    return _get_active(t, fact.scope, fact.number)


def _get_active(t: Tx, scope: Scope, number: int) -> Fact:
    found = facts.get_numbered(t, scope, number)
    if found.state is not FactState.ACTIVE:
        raise UsageError(f"fact {number} is {found.state.value} already")
    return found


def _take_version(t: Tx, scope: Scope) -> int:
    return t.fetch_value(
        "UPDATE memory_scope SET version = version + 1 WHERE scope = $1 RETURNING version", scope
    )


def _take_number(t: Tx, scope: Scope) -> int:
    return t.fetch_value(
        "UPDATE memory_scope SET last_number = last_number + 1 WHERE scope = $1"
        " RETURNING last_number",
        scope,
    )


def make_text_key(text: str) -> str:
    """Return the key by which the same text is known: without case and the end of a sentence."""
    return hashlib.sha256(fold_text(text).rstrip(".!").encode()).hexdigest()


def _change(t: Tx, fact: Fact, change: FactChange, writer: FactWriter, **fields: Any) -> Fact:
    """Store a changed fact of a locked scope."""
    changed = replace(fact, version=_take_version(t, fact.scope), written_by=writer, **fields)
    _record(t, changed, change)
    t.execute(
        """
        UPDATE memory_fact
        SET text = $2, text_key = $3, state = $4, pinned = $5, version = $6, written_by = $7
        WHERE id = $1
        """,
        changed.id,
        changed.text,
        changed.text_key,
        changed.state.value,
        changed.pinned,
        changed.version,
        changed.written_by.value,
    )
    return changed


def _record(t: Tx, fact: Fact, change: FactChange) -> None:
    t.execute(
        """
        INSERT INTO memory_change (scope, version, fact, change, written_by, at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        fact.scope,
        fact.version,
        fact.id,
        change.value,
        fact.written_by.value,
        t.now,
    )


def _insert(t: Tx, fact: Fact) -> None:
    t.execute(
        """
        INSERT INTO memory_fact (
            id, scope, number, kind, text, text_key, state, pinned, version, written_by,
            conversation, seq, source_hash, replaces, created_at, uses
        ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
        """,
        fact.id, fact.scope, fact.number, fact.kind.value, fact.text, fact.text_key,
        fact.state.value, fact.pinned, fact.version, fact.written_by.value, fact.conversation,
        fact.seq, fact.source_hash, fact.replaces, fact.created_at, fact.uses,
    )  # fmt: skip
