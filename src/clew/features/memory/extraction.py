"""
Extractions: facts that a model finds in what people said, in the store.

The span is claimed, the model asked, and what comes of it stored with the end of the span in one
commit: whoever is killed meanwhile has changed nothing, and the span is read again.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog

from clew.errors import UsageError
from clew.features.memory import facts, proposals, sources, writing
from clew.features.memory.extraction_spans import finish_span, lock_row, read_forgotten
from clew.features.memory.extraction_text import find_contradicted, parse_answer
from clew.features.memory.facts import FactWriter
from clew.store.transactions.grants import is_tainted
from clew.store.transactions.usage import record_answer

if TYPE_CHECKING:
    from clew.core.side_answer import SideAnswer
    from clew.features.memory.extraction_spans import Extraction, ExtractionRules
    from clew.features.memory.extraction_text import FoundFact
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

#: Failures in a row after which a span is left out, and the pause after each.
MAX_FAILURES: Final = 3
_PAUSE: Final = timedelta(minutes=10)


def store_facts(
    t: Tx, asked: Extraction, answer: SideAnswer, rules: ExtractionRules, usage: str
) -> None:
    """Store what an answer says about a span, once, and what it cost."""
    if not sources.is_there(t, asked.conversation):
        return
    record_answer(t, asked.conversation, answer, id=usage, purpose="memory")
    if not _is_ours(t, asked, rules):
        return
    found = parse_answer(answer)
    if found is None:
        log.warning("memory_answer_unusable", conversation=asked.conversation)
    # What is forgotten since the model was asked may be in its answer.
    is_stale = read_forgotten(t, asked.scope) != asked.forgotten_at
    for number, one in enumerate([] if is_stale else found or []):
        try:
            _store_fact(t, asked, number, one, rules)
        except UsageError as error:
            log.info("memory_fact_left_out", conversation=asked.conversation, reason=str(error))
    finish_span(t, asked.conversation, asked.upto)


def _store_fact(
    t: Tx, asked: Extraction, number: int, one: FoundFact, rules: ExtractionRules
) -> None:
    digest = hashlib.sha256(f"{asked.conversation} {asked.upto} {number}".encode()).hexdigest()[:20]
    active = facts.list_active(t, asked.scope)
    pinned = [fact for fact in active if fact.pinned]
    known = any(fact.number == one.replaces for fact in active)
    given = writing.NewFact(
        id=f"mem_{digest}",
        scope=asked.scope,
        text=one.text,
        kind=one.kind,
        written_by=FactWriter.AGENT,
        source=sources.make_source(t, asked.conversation, _find_seq(asked, one)),
        replaces=one.replaces if known else None,
    )
    if rules.keeps and not find_contradicted(one, pinned) and not is_tainted(t, asked.conversation):
        writing.remember(t, given)
    else:
        proposals.propose(t, given)


def _find_seq(asked: Extraction, one: FoundFact) -> int:
    """Return the message of a person that a fact names, or the last one."""
    said = [message.seq for message in asked.messages if message.is_person]
    return one.seq if one.seq in said else said[-1]


def store_failure(t: Tx, asked: Extraction, rules: ExtractionRules) -> None:
    """Have a span be read again later, or leave it out if that failed too often."""
    if not sources.is_there(t, asked.conversation) or not _is_ours(t, asked, rules):
        return
    failures: int = t.fetch_value(
        "UPDATE memory_extraction SET failures = failures + 1, owner = NULL, due_at = $2"
        " WHERE conversation = $1 RETURNING failures",
        asked.conversation,
        t.now + _PAUSE // timedelta(milliseconds=1),
    )
    if failures >= MAX_FAILURES:
        finish_span(t, asked.conversation, asked.upto)


def _is_ours(t: Tx, asked: Extraction, rules: ExtractionRules) -> bool:
    """Return whether nobody else read the span meanwhile."""
    return lock_row(t, asked.conversation) == (asked.after, rules.owner)
