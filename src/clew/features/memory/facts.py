"""Facts that are remembered, and their changes, in the store."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, LiteralString

from clew.core.scope import LOCAL, Scope
from clew.errors import NotFound, UsageError
from clew.record import Record
from clew.store.records import RecordQuery

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx

#: What an operator has every conversation know.
SHARED: Final = Scope("shared")


class FactKind(enum.Enum):
    PROFILE = "profile"  #: who a person is
    PREFERENCE = "preference"
    FACT = "fact"
    PLAN = "plan"


class FactState(enum.Enum):
    ACTIVE = "active"
    REPLACED = "replaced"  #: another fact is in its place
    FORGOTTEN = "forgotten"  #: its text is erased


class FactChange(enum.Enum):
    """Kind of a change of a fact."""

    ADDED = "added"
    EDITED = "edited"
    REPLACED = "replaced"
    FORGOTTEN = "forgotten"
    PINNED = "pinned"
    UNPINNED = "unpinned"


class FactWriter(enum.Enum):
    """Writer of a fact."""

    PERSON = "person"
    AGENT = "agent"
    IMPORT = "import"


class Fact(Record):
    """One sentence that is remembered in a scope."""

    id: str
    scope: Scope
    number: int
    kind: FactKind
    #: ``None`` once it is forgotten.
    text: str | None
    #: By which the same text is found; ``None`` with the text.
    text_key: str | None
    state: FactState
    pinned: int
    #: Of the scope, at its last change.
    version: int
    written_by: FactWriter
    #: The entry that it was taken from; ``None`` if it was not said in a conversation.
    conversation: ConversationId | None
    seq: int | None
    source_hash: str | None
    replaces: str | None
    created_at: int
    uses: int
    used_at: int | None


_COLUMNS: LiteralString = (
    "id, scope, number, kind, text, text_key, state, pinned, version, written_by, conversation,"
    " seq, source_hash, replaces, created_at, uses, used_at"
)
FACTS: Final = RecordQuery(
    Fact,
    f"SELECT {_COLUMNS} FROM memory_fact",
    {"kind": FactKind, "state": FactState, "written_by": FactWriter},
)


def list_visible_scopes(viewer: Scope) -> tuple[Scope, ...]:
    """Return the scopes whose facts a conversation of a scope is told, its own first."""
    return (viewer, SHARED)


def read_last_change(t: Tx, scope: Scope) -> tuple[int, str] | None:
    """Return the version and the fact of the last change of a scope: no other store has both."""
    row = t.fetch_one(
        "SELECT version, fact FROM memory_change WHERE scope = $1 ORDER BY version DESC LIMIT 1",
        scope,
    )
    return None if row is None else (row[0], row[1])


def read_version_at(t: Tx, scope: Scope, at: int) -> int:
    """Return the number of changes that a scope had before a time."""
    return t.fetch_value(
        "SELECT COALESCE(max(version), 0) FROM memory_change WHERE scope = $1 AND at < $2",
        scope,
        at,
    )


def list_active(t: Tx, scope: Scope) -> list[Fact]:
    """Return the facts of a scope, in the order of their numbers."""
    return FACTS.fetch_all(t, "WHERE scope = $1 AND state = 'active' ORDER BY number", scope)


def list_ranked(t: Tx, scope: Scope, *, limit: int) -> list[Fact]:
    """Return the facts of a scope to tell first: pinned, then often used, then new ones."""
    return FACTS.fetch_all(
        t,
        "WHERE scope = $1 AND state = 'active'"
        " ORDER BY pinned DESC, uses DESC, created_at DESC, number DESC LIMIT $2",
        scope,
        limit,
    )


def find_same(t: Tx, scope: Scope, text_key: str) -> Fact | None:
    """Return the fact of a scope with a text."""
    return FACTS.fetch_one(
        t, "WHERE scope = $1 AND text_key = $2 AND state = 'active'", scope, text_key
    )


def count_active(t: Tx, scope: Scope) -> int:
    """Return how many facts a scope has."""
    return t.fetch_value(
        "SELECT count(*) FROM memory_fact WHERE scope = $1 AND state = 'active'", scope
    )


def list_scopes(t: Tx) -> list[tuple[str, int]]:
    """Return the scopes that have facts, and how many."""
    return t.fetch_all(
        "SELECT scope, count(*) FROM memory_fact WHERE state = 'active' GROUP BY scope ORDER BY 1"
    )


def find_fact(t: Tx, fact: str) -> Fact | None:
    """Return a fact by its id."""
    return FACTS.fetch_one(t, "WHERE id = $1", fact)


def get_numbered(t: Tx, scope: Scope, number: int) -> Fact:
    """
    Return a fact of a scope by its number.

    :raises NotFound: if there is none
    """
    found = FACTS.fetch_one(t, "WHERE scope = $1 AND number = $2", scope, number)
    if found is None:
        raise NotFound("fact", str(number))
    return found


def get_named(t: Tx, name: str, *, viewer: Scope) -> Fact:
    """
    Return a fact by its id or number.

    :raises NotFound: if there is none in the viewer's scope; ``local`` sees all by id
    """
    if name.startswith("mem_"):
        found = find_fact(t, name)
        if found is None or viewer not in (LOCAL, found.scope):
            raise NotFound("fact", name)
        return found
    number = name.strip().removeprefix("#")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise UsageError(f"{name!r} is no number of a fact: /memory lists them")
    return get_numbered(t, viewer, int(number))


def list_replaced(t: Tx, fact: Fact) -> list[Fact]:
    """Return the facts in whose place a fact is, the newest first."""
    found: list[Fact] = []
    while fact.replaces is not None and (before := find_fact(t, fact.replaces)) is not None:
        found.append(before)
        fact = before
    return found


def list_changed(t: Tx, scope: Scope, *, after: int, upto: int) -> list[Fact]:
    """Return the facts of a scope whose last change lies between two versions."""
    return FACTS.fetch_all(
        t,
        "WHERE scope = $1 AND version > $2 AND version <= $3 ORDER BY version",
        scope,
        after,
        upto,
    )
