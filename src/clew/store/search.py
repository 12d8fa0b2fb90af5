"""
Search over everything that was said: newest first, within a scope.

A search reads the index and the messages that are not in it yet, and never writes. Whoever looks
after the store keeps the index up to date with ``index_slice``; a damaged index is made anew with
``begin_anew``. What the index proposes is compared with the text: it can miss, but never invent.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString

from clew.clock import from_millis
from clew.core.entry import Role
from clew.core.ids import ConversationId
from clew.core.scope import LOCAL
from clew.core.search import ParsedQuery, parse_query, tokenize_text
from clew.errors import SearchNotReady, UsageError
from clew.store.index import FAR, scope_token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from clew.core.scope import Scope
    from clew.store.contract import Row, Tx

#: A search that has compared so many proposals of the index returns with what it has found.
EXAMINED = 4000
#: With more messages than these not in the index a search would take too long.
BEHIND = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A message that was looked for."""

    conversation_id: ConversationId
    seq: int
    role: Role
    title: str | None
    #: A line of the text around the place.
    snippet: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchPage:
    """Hits, newest first. A page may be short, even empty, and still have a next one."""

    items: tuple[Hit, ...]
    #: The cursor of the next page; ``None`` after the last one.
    next: str | None


def search(
    t: Tx, query: str, *, viewer: Scope, limit: int = 20, cursor: str | None = None
) -> SearchPage:
    """
    The messages that hold all that a query names; see ``clew.core.search.parse``.

    ``cursor`` is the ``next`` of the page before. Messages that come in between move no page.

    :raises UsageError: if there is nothing in the query to look for, or the cursor is none of ours
    :raises SearchNotReady: if the index is damaged or too far behind
    """
    wanted, before = parse_query(query), _before(cursor)
    _check_ready(t)
    hits: list[Hit] = []
    last = 0
    for examined, row in enumerate(_proposed(t, wanted, viewer, before)):
        if len(hits) == limit or examined == EXAMINED:
            return SearchPage(items=tuple(hits), next=str(last))
        last = row[0]
        if wanted.matches_text(row[4]):
            hits.append(_hit(row, wanted))
    return SearchPage(items=tuple(hits), next=None)


def _before(cursor: str | None) -> int:
    if cursor is None:
        return FAR
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise UsageError("the cursor is not one that a search has returned")
    return int(cursor)


def _check_ready(t: Tx) -> None:
    if is_damaged(t):
        raise SearchNotReady(damaged=True)
    if t.index.behind(BEHIND) == BEHIND:
        raise SearchNotReady(damaged=False)


def is_damaged(t: Tx) -> bool:
    """Whether the index has to be made anew."""
    row = t.one("SELECT is_broken FROM search_state")
    return row is None or bool(row[0])


def _proposed(t: Tx, wanted: ParsedQuery, viewer: Scope, before: int) -> Iterator[Row]:
    """The messages that have to be compared, newest first, each once."""
    needed = wanted.index_tokens()
    if viewer != LOCAL:
        needed.append(scope_token(viewer))
    tail = (row for row in t.index.tail(viewer, before) if wanted.matches_text(row[4]))
    last = FAR
    for row in heapq.merge(tail, t.index.find(needed, viewer, before), key=_n, reverse=True):
        if row[0] != last:  # an index that is being made anew may have what is in the tail as well
            yield row
        last = row[0]


def _n(row: Row) -> int:
    return row[0]


def _hit(row: Row, wanted: ParsedQuery) -> Hit:
    return Hit(
        conversation_id=ConversationId(row[1]),
        seq=row[2],
        role=Role(row[3]),
        title=row[6],
        snippet=wanted.make_snippet(row[4]),
        created_at=from_millis(row[5]),
    )


def is_behind(t: Tx) -> bool:
    """Whether ``index_slice`` has something to do."""
    return is_damaged(t) or t.index.behind(1) > 0


def index_slice(t: Tx, *, limit: int = 500) -> int:
    """
    Put at most ``limit`` messages that are not in the index into it; how many, 0 when none is left.

    :raises SearchNotReady: if the index is damaged; nothing was changed
    """
    if is_damaged(t):
        raise SearchNotReady(damaged=True)
    messages = t.index.take(limit)
    t.index.add([(n, held(scope, text)) for n, scope, text in messages])
    return len(messages)


def held(scope: Scope, text: str) -> set[str]:
    """The tokens under which the index has a message."""
    return {*tokenize_text(text), scope_token(scope)}


def condemn(t: Tx) -> None:
    """Have the index made anew by whoever looks after it; until then search refuses."""
    t.run("UPDATE search_state SET is_broken = 1 WHERE is_broken = 0")


def begin_anew(t: Tx) -> None:
    """Begin with an empty index in place of a damaged one; ``index_slice`` fills it."""
    if is_damaged(t):
        t.index.clear()
        t.run("UPDATE search_state SET is_broken = 0")


def remains(t: Tx) -> list[LiteralString]:
    """What is left of damaged indexes."""
    return t.index.remains()


def discard(t: Tx, name: LiteralString) -> None:
    """
    Free the space of something that is left of a damaged index.

    :raises SearchNotReady: if its pages cannot be walked through; it stays
    """
    t.index.discard(name)


def forget(t: Tx, conversation: ConversationId, *, limit: int = 50) -> list[int]:
    """
    Take the first entries of a conversation out of the index, and return their ``n``.

    Their rows have to be deleted in the same transaction.

    :raises SearchNotReady: if the index turns out to be damaged; repeat it after ``condemn``
    """
    # Locked first: a slice that is just adding one of them ends before it is looked for.
    found = t.all(
        """
        SELECT e.n, (SELECT c.scope FROM conversation c WHERE c.id = e.conversation_id), e.text
        FROM entry e WHERE e.conversation_id = $1 ORDER BY e.seq LIMIT $2 @LOCK
        """,
        conversation,
        limit,
    )
    if not is_damaged(t):
        t.index.remove([(n, held(scope, text)) for n, scope, text in found])
    return [row[0] for row in found]
