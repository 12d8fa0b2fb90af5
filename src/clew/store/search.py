"""
Search over all messages: newest first, within a scope.

A search reads the index and the messages that are not indexed yet, and never writes. The
maintenance task keeps the index up to date with ``index_batch``; ``start_rebuild`` replaces
a damaged index. Each match of the index is compared with the text: the index can miss a
message, but never return a wrong one.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, LiteralString

from clew.clock import from_millis
from clew.core.entry import Role
from clew.core.scope import LOCAL
from clew.core.search import ParsedQuery, parse_query, tokenize_text
from clew.errors import SearchNotReady, UsageError
from clew.record import Record
from clew.store.search_index import MAX_ENTRY_NUMBER, scope_token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.store.contract import Tx
    from clew.store.search_index import CandidateMessage

#: A search returns what it has found after comparing this many candidates.
MAX_EXAMINED = 4000
#: With more unindexed messages than this a search would take too long.
MAX_UNINDEXED = 10_000


class SearchHit(Record):
    """Message that matches a query."""

    conversation_id: ConversationId
    seq: int
    role: Role
    title: str | None
    #: A line of text around the match.
    snippet: str
    created_at: datetime


class SearchPage(Record):
    """Hits, newest first; a page may be short, even empty, and still have a next one."""

    items: tuple[SearchHit, ...]
    #: The cursor of the next page; ``None`` after the last one.
    next: str | None


def search_messages(
    t: Tx, query: str, *, viewer: Scope, limit: int = 20, cursor: str | None = None
) -> SearchPage:
    """
    Return the messages that match a query; see ``clew.core.search.parse``.

    ``cursor`` is the ``next`` of the previous page. New messages do not shift pages.

    :raises UsageError: if the query contains nothing to search for, or the cursor is
        invalid
    :raises SearchNotReady: if the index is damaged or too far behind
    """
    wanted, before = parse_query(query), _parse_cursor(cursor)
    _raise_if_not_ready(t)
    hits: list[SearchHit] = []
    last = 0
    for examined, message in enumerate(_iter_candidates(t, wanted, viewer, before)):
        if len(hits) == limit or examined == MAX_EXAMINED:
            return SearchPage(items=tuple(hits), next=str(last))
        last = message.n
        if wanted.matches_text(message.text):
            hits.append(_to_hit(message, wanted))
    return SearchPage(items=tuple(hits), next=None)


def _parse_cursor(cursor: str | None) -> int:
    if cursor is None:
        return MAX_ENTRY_NUMBER
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise UsageError("the cursor is not one that a search has returned")
    return int(cursor)


def _raise_if_not_ready(t: Tx) -> None:
    if is_damaged(t):
        raise SearchNotReady(damaged=True)
    if t.search_index.count_unindexed(MAX_UNINDEXED) == MAX_UNINDEXED:
        raise SearchNotReady(damaged=False)


def is_damaged(t: Tx) -> bool:
    """Return true if the index has to be rebuilt."""
    return t.fetch_value("SELECT is_broken FROM search_state") != 0


def _iter_candidates(
    t: Tx, wanted: ParsedQuery, viewer: Scope, before: int
) -> Iterator[CandidateMessage]:
    """Iterate over the messages that have to be compared, newest first, each once."""
    needed = wanted.index_tokens()
    if viewer != LOCAL:
        needed.append(scope_token(viewer))
    tail = (
        message
        for message in t.search_index.iter_unindexed(viewer, before)
        if wanted.matches_text(message.text)
    )
    last = MAX_ENTRY_NUMBER
    indexed = t.search_index.iter_matches(needed, viewer, before)
    for message in heapq.merge(tail, indexed, key=_entry_number, reverse=True):
        if message.n != last:  # an index under rebuild may also contain unindexed messages
            yield message
        last = message.n


def _entry_number(message: CandidateMessage) -> int:
    return message.n


def _to_hit(message: CandidateMessage, wanted: ParsedQuery) -> SearchHit:
    return SearchHit(
        conversation_id=message.conversation_id,
        seq=message.seq,
        role=Role(message.role),
        title=message.title,
        snippet=wanted.make_snippet(message.text),
        created_at=from_millis(message.created_at),
    )


def needs_indexing(t: Tx) -> bool:
    """Return true if ``index_batch`` has work to do."""
    return is_damaged(t) or t.search_index.count_unindexed(1) > 0


def index_batch(t: Tx, *, limit: int = 500) -> int:
    """
    Index at most ``limit`` messages; return how many, 0 when none is left.

    :raises SearchNotReady: if the index is damaged; nothing was changed
    """
    if is_damaged(t):
        raise SearchNotReady(damaged=True)
    messages = t.search_index.claim_unindexed(limit)
    t.search_index.add_messages([(n, message_tokens(scope, text)) for n, scope, text in messages])
    return len(messages)


def message_tokens(scope: Scope, text: str) -> set[str]:
    """Return the tokens under which a message is indexed."""
    return {*tokenize_text(text), scope_token(scope)}


def mark_damaged(t: Tx) -> None:
    """Mark the index for a rebuild; until then searches are rejected."""
    t.execute("UPDATE search_state SET is_broken = 1 WHERE is_broken = 0")


def start_rebuild(t: Tx) -> None:
    """Replace a damaged index with an empty one, which ``index_batch`` fills."""
    if is_damaged(t):
        t.search_index.clear()
        t.execute("UPDATE search_state SET is_broken = 0")


def find_leftover_tables(t: Tx) -> list[LiteralString]:
    """Return the leftover tables of damaged indexes."""
    return t.search_index.find_leftover_tables()


def drop_leftover_table(t: Tx, name: LiteralString) -> None:
    """
    Free the space of one leftover table of a damaged index.

    :raises SearchNotReady: if its pages cannot be read; the table stays
    """
    t.search_index.drop_leftover_table(name)


def unindex_entries(t: Tx, conversation: ConversationId, *, limit: int = 50) -> list[int]:
    """
    Remove the first entries of a conversation from the index; return their ``n``.

    The caller deletes their rows in the same transaction.

    :raises SearchNotReady: if the index turns out to be damaged; retry after
        ``mark_damaged``
    """
    # Lock first: a batch that is adding one of them finishes before the lookup.
    found = t.fetch_all(
        """
        SELECT e.n, (SELECT c.scope FROM conversation c WHERE c.id = e.conversation_id), e.text
        FROM entry e WHERE e.conversation_id = $1 ORDER BY e.seq LIMIT $2 @LOCK
        """,
        conversation,
        limit,
    )
    if not is_damaged(t):
        t.search_index.remove_messages(
            [(n, message_tokens(scope, text)) for n, scope, text in found]
        )
    return [n for n, _, _ in found]
