"""Forgetting: the text goes from the memory, and from what every open session is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.forgotten_text import Redaction
from clew.core.ids import new_session_id
from clew.features.memory import facts, links, proposals, sources, writing
from clew.features.memory.facts import SHARED, FactWriter
from clew.features.memory.withheld import withhold
from clew.features.memory.wording import format_place
from clew.record import Record
from clew.store.transactions import redactions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.features.memory.facts import Fact
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx


class Forgotten(Record):
    """Result of forgetting a fact."""

    #: With their texts; empty if it was forgotten before.
    facts: tuple[Fact, ...]
    #: Conversations that go on without the text, once their turns have ended.
    conversations: tuple[ConversationId, ...]
    #: Conversations whose logs still have what was said.
    sources: tuple[ConversationId, ...]

    def describe(self) -> str:
        """Return it in words."""
        if not self.facts:
            return "It is forgotten already."
        said = f"Fact {self.facts[0].number} is forgotten."
        if self.conversations:
            said += " Open conversations go on without it."
        if self.sources:
            said += (
                f" The messages in which it was said are still in {', '.join(self.sources)}: "
                "/delete removes one."
            )
        return said


def forget(t: Tx, fact: Fact, *, written_by: FactWriter) -> Forgotten:
    """Erase a fact and what it replaced, and have open sessions go on without them."""
    erased = writing.forget(t, fact, written_by=written_by)
    texts = tuple(one.text for one in erased if one.text)
    proposals.erase_text(t, fact.scope, texts)
    named = _list_sources(t, erased)
    told_scopes = links.list_told(t, fact.scope, ended=True)
    scopes: list[Scope | None] = [None] if fact.scope == SHARED else [*told_scopes]
    withhold(t, texts, [SHARED] if fact.scope == SHARED else told_scopes)
    marks = tuple(
        format_place(one.conversation, one.seq)
        for one in erased
        if one.conversation is not None and one.seq is not None
    )
    told = redactions.redact_contexts(
        t,
        Redaction(texts=texts, marks=marks),
        entries=_list_source_entries(erased),
        scopes=scopes,
        name=fact.id,
        session_ids=new_session_id,
    )
    return Forgotten(facts=tuple(erased), conversations=tuple(told), sources=named)


def _list_source_entries(erased: Sequence[Fact]) -> Mapping[ConversationId, Sequence[int]]:
    entries: dict[ConversationId, list[int]] = {}
    for one in erased:
        if one.conversation is not None and one.seq is not None:
            entries.setdefault(one.conversation, []).append(one.seq)
    return entries


def _list_sources(t: Tx, erased: Sequence[Fact]) -> tuple[ConversationId, ...]:
    named = dict.fromkeys(one.conversation for one in erased if one.conversation is not None)
    return tuple(name for name in named if sources.is_there(t, name))


def tell_forgotten(services: FeatureContext, done: Forgotten) -> str:
    """Have the open conversations go on without it at once; return what was done, in words."""
    for conversation in done.conversations:
        services.work_on(conversation)
    return done.describe()


def forget_with_conversations(t: Tx) -> None:
    """Forget what was taken from conversations that are no longer there."""
    for name in t.fetch_column(
        """
        SELECT f.id FROM memory_fact f
        WHERE f.state <> 'forgotten' AND f.conversation IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = f.conversation)
        ORDER BY f.id LIMIT 100
        """
    ):
        fact = facts.find_fact(t, name)
        assert fact is not None
        forget(t, fact, written_by=FactWriter.PERSON)
