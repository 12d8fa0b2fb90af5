"""Spans of conversations that are read for facts: which are due, and who reads them."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clew.core.entry import CAUSED_PATTERN
from clew.core.rewound import find_rewound_spans, is_rewound
from clew.features.memory import facts
from clew.features.memory.extraction_text import SpanMessage, format_message, write_prompt
from clew.features.memory.facts import SHARED
from clew.features.memory.memories import find_memory_of
from clew.features.memory.wording import choose_core
from clew.record import Record
from clew.store.transactions import rewinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import ConversationId, OwnerId
    from clew.core.scope import Scope
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

#: What was said before is not read: of a gateway that was off, or that has just learnt to.
OLDEST: Final = timedelta(days=1)
#: Characters of the messages of one request.
MAX_SPAN: Final = 24_000
_MS: Final = timedelta(milliseconds=1)


class ExtractionRules(Record):
    """Settings of extractions, and the process that makes them."""

    #: Without a person's answer, where nothing speaks against it.
    keeps: bool
    rest: timedelta
    turns: int
    owner: OwnerId


class Extraction(Record):
    """A claimed span, and what the model is asked about it."""

    conversation: ConversationId
    scope: Scope
    #: The entries after ``after``, up to ``upto``.
    after: int
    upto: int
    messages: tuple[SpanMessage, ...]
    #: When something was last forgotten, as far as it is known.
    forgotten_at: int
    prompt: str


def list_due(t: Tx, rules: ExtractionRules, *, limit: int) -> list[ConversationId]:
    """Return the conversations that rest, or had many turns, since they were read."""
    return t.fetch_column(
        """
        SELECT l.conversation_id FROM lease l
        JOIN conversation c ON c.id = l.conversation_id AND c.deleting_at IS NULL AND c.adhoc = 0
        LEFT JOIN memory_extraction x ON x.conversation = l.conversation_id
        WHERE l.updated_at > $1 AND l.last_seq > COALESCE(x.seq, 0)
            AND COALESCE(x.due_at, 0) <= $2
            AND (l.updated_at <= $3 OR $4 <= (
                SELECT count(*) FROM turn u WHERE u.conversation_id = l.conversation_id
                    AND u.outcome = 'answered' AND u.first_seq > COALESCE(x.seq, 0)
                    AND u.started_at > $1
            ))
        ORDER BY l.updated_at LIMIT $5
        """,
        t.now - OLDEST // _MS,
        t.now,
        t.now - rules.rest // _MS,
        rules.turns,
        limit,
    )


def claim_span(
    t: Tx, services: FeatureContext, conversation: ConversationId, rules: ExtractionRules
) -> Extraction | None:
    """
    Return what a model is to be asked about what was said since the last time.

    ``None`` if there is nothing, its agent has no memory, or another process that is alive asks
    already.
    """
    after, owner = lock_row(t, conversation)
    if owner is not None and owner != rules.owner and t.is_alive(owner):
        return None
    scope = find_memory_of(t, services, conversation)
    end = _find_end(t, conversation)
    if scope is None:
        finish_span(t, conversation, end)
        return None
    forgotten_at = read_forgotten(t, scope)
    start = max(forgotten_at, t.now - OLDEST // _MS)
    messages = _list_messages(t, conversation, after, end, start)
    chosen = _choose_messages(messages)
    if len(chosen) < len(messages):
        end = chosen[-1].seq
    if not any(one.is_person for one in chosen):
        finish_span(t, conversation, end)
        return None
    # The shared ones have numbers of their own.
    known = choose_core(facts.list_ranked(t, scope, limit=1_000))
    prompt = write_prompt(chosen, known)
    t.execute(
        "UPDATE memory_extraction SET owner = $2 WHERE conversation = $1", conversation, rules.owner
    )
    t.execute(
        "INSERT INTO memory_prompt (conversation, hash) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        conversation,
        hash_prompt(prompt),
    )
    return Extraction(
        conversation=conversation,
        scope=scope,
        after=after,
        upto=end,
        messages=tuple(chosen),
        forgotten_at=forgotten_at,
        prompt=prompt,
    )


def hash_prompt(prompt: str) -> str:
    """Return the hash by which it is known what was sent."""
    return hashlib.sha256(prompt.encode()).hexdigest()


def lock_row(t: Tx, conversation: ConversationId) -> tuple[int, OwnerId | None]:
    """Return how far a conversation was read, and who reads on, until the commit."""
    t.execute(
        "INSERT INTO memory_extraction (conversation, seq) VALUES ($1, 0) ON CONFLICT DO NOTHING",
        conversation,
    )
    row = t.fetch_one(
        "SELECT seq, owner FROM memory_extraction WHERE conversation = $1 @LOCK", conversation
    )
    assert row is not None
    return row[0], row[1]


def _find_end(t: Tx, conversation: ConversationId) -> int:
    """Return the last entry before what still goes on."""
    return t.fetch_value(
        """
        SELECT COALESCE(
            (SELECT min(first_seq) - 1 FROM turn WHERE conversation_id = $1 AND state <> 'done'),
            (SELECT last_seq FROM lease WHERE conversation_id = $1), 0)
        """,
        conversation,
    )


def read_forgotten(t: Tx, scope: Scope) -> int:
    """Return when something was last forgotten: what was said before is not read."""
    return t.fetch_value(
        "SELECT COALESCE(max(forgotten_at), 0) FROM memory_scope WHERE scope IN ($1, $2)",
        scope,
        SHARED,
    )


def _list_messages(
    t: Tx, conversation: ConversationId, after: int, end: int, start: int
) -> list[SpanMessage]:
    """Return what people and the agent said in turns that began after a time."""
    gone = find_rewound_spans(rewinds.list_rewinds(t, conversation))
    rows = t.fetch_all(
        """
        SELECT e.seq, e.role, e.text FROM entry e
        JOIN turn u ON u.id = e.turn_id AND u.started_at > $4
        WHERE e.conversation_id = $1 AND e.seq > $2 AND e.seq <= $3 AND e.kind = 'message'
            AND e.role <> 'tool' AND e.text <> '' AND (e.role <> 'user' OR e.message NOT LIKE $5)
        ORDER BY e.seq
        """,
        conversation,
        after,
        end,
        start,
        CAUSED_PATTERN,
    )
    return [
        SpanMessage(seq=seq, is_person=role == "user", text=text)
        for seq, role, text in rows
        if not is_rewound(seq, gone)
    ]


def _choose_messages(messages: Sequence[SpanMessage]) -> list[SpanMessage]:
    """Return the first messages that fit into a request."""
    chosen: list[SpanMessage] = []
    left = MAX_SPAN
    for one in messages:
        left -= len(format_message(one))
        if left < 0 and chosen:
            break
        chosen.append(one)
    return chosen


def finish_span(t: Tx, conversation: ConversationId, upto: int) -> None:
    """Record that a conversation was read up to an entry."""
    t.execute(
        """
        UPDATE memory_extraction
        SET seq = CASE WHEN seq < $2 THEN $2 ELSE seq END, owner = NULL, failures = 0, due_at = 0
        WHERE conversation = $1
        """,
        conversation,
        upto,
    )
