"""Calls of the tools of memory, within the scope of their turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import UsageError
from clew.features.memory import elsewhere, facts, writing
from clew.features.memory.facts import FactKind, FactWriter
from clew.features.memory.forgetting import forget as forget_everywhere
from clew.features.memory.forgetting import tell_forgotten
from clew.features.memory.memories import find_memory_of, get_memory
from clew.features.memory.searching import RECALL
from clew.features.memory.sources import find_source
from clew.features.memory.wording import format_fact, format_place
from clew.plugin import get_turn_context
from clew.store.transactions import journal
from clew.store.transactions.grants import is_tainted

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.journal import CallKey
    from clew.core.scope import Scope
    from clew.features.memory.facts import Fact
    from clew.features.memory.forgetting import Forgotten
    from clew.features.memory.searching import Recalled
    from clew.plugin import TurnContext
    from clew.store.contract import Tx


def _get_context() -> TurnContext:
    context = get_turn_context()
    if context is None:
        raise UsageError("memory is used in turns only")
    return context


def _get_key(context: TurnContext) -> CallKey:
    assert context.call_key is not None
    return context.call_key


def _get_memory(t: Tx, context: TurnContext) -> Scope:
    return get_memory(t, context.scope, context.profile)


async def remember(text: str, kind: str, instead_of: int) -> str:
    """Keep a fact, once for each call."""
    context = _get_context()
    said = await context.services.store.write(_remember, context, text, kind, instead_of)
    return "\n".join([said, *await elsewhere.remember(context, text)])


def _remember(t: Tx, context: TurnContext, text: str, kind: str, instead_of: int) -> str:
    made = writing.remember(
        t,
        writing.NewFact(
            id=f"mem_{_get_key(context).make_digest()[:20]}",
            scope=_get_memory(t, context),
            text=text,
            kind=FactKind(kind),
            written_by=FactWriter.AGENT,
            source=find_source(t, context.conversation, context.turn),
            replaces=instead_of or None,
        ),
    )
    return f"Remembered as {format_fact(made)}"


async def recall(query: str) -> str:
    """Return what is known about a query."""
    context = _get_context()
    found = await context.services.store.write(_find, context, query)
    lines = [_format_known(one) for one in found.facts]
    lines += [
        f"[{hit.created_at:%Y-%m-%d}, {hit.role.value}] {' '.join(hit.snippet.split())} "
        f"{format_place(hit.conversation_id, hit.seq)}"
        for hit in found.messages
    ]
    lines += await elsewhere.recall(context, query)
    if found.remark:
        lines.append(f"[messages were not searched: {found.remark}]")
    return "\n".join(lines) or "Nothing is known about that."


def _format_known(fact: Fact) -> str:
    told = format_fact(fact)
    return (
        told if fact.conversation is None else f"{told} {format_place(fact.conversation, fact.seq)}"
    )


def _find(t: Tx, context: TurnContext, query: str) -> Recalled:
    own = _get_memory(t, context)

    def is_ours(conversation: ConversationId) -> bool:
        return find_memory_of(t, context.services, conversation) == own

    found = RECALL.find(t, query, own, is_ours)
    writing.mark_used(t, found.facts)
    # A message that was made from text of strangers brings that text along.
    if any(is_tainted(t, one) for one in {hit.conversation_id for hit in found.messages}):
        journal.mark_untrusted(t, _get_key(context))
    return found


async def forget(number: int) -> str:
    """Erase a fact; what is forgotten already stays so."""
    context = _get_context()
    done = await context.services.store.write(_forget, context, number)
    for fact in done.facts:
        await elsewhere.forget(context, fact.text or "")
    return tell_forgotten(context.services, done)


def _forget(t: Tx, context: TurnContext, number: int) -> Forgotten:
    fact = facts.get_numbered(t, _get_memory(t, context), number)
    return forget_everywhere(t, fact, written_by=FactWriter.AGENT)
