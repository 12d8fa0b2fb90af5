"""Use cases of memory, for people, programs and the model on every front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.clock import from_millis
from clew.errors import UsageError
from clew.features.memory import proposals, sources, writing
from clew.features.memory.wording import describe_source, format_fact, format_listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.scope import Scope
    from clew.features.memory.facts import Fact
    from clew.features.memory.proposals import Proposal
    from clew.store.contract import Tx


def format_details(t: Tx, fact: Fact, before: Sequence[Fact]) -> str:
    """Return a fact with its source and what was there before, for people."""
    lines = [
        format_listed(fact),
        describe_source(fact, is_there=sources.is_there(t, fact.conversation)),
    ]
    if (said := sources.read_text(t, fact)) is not None:
        lines.append(f"said: {said}")
    if fact.uses:
        lines.append(f"recalled {fact.uses} times")
    return "\n".join([*lines, *(f"before: {one.text}" for one in before if one.text)])


def describe_fact(t: Tx, fact: Fact) -> dict[str, Any]:
    """Return a fact as programs get it."""
    return describe_facts(t, [fact])[0]


def describe_facts(t: Tx, found: Sequence[Fact]) -> list[dict[str, Any]]:
    """Return facts as programs get them."""
    there = {name: sources.is_there(t, name) for name in {one.conversation for one in found}}
    return [_describe(one, is_there=there[one.conversation]) for one in found]


def _describe(fact: Fact, *, is_there: bool) -> dict[str, Any]:
    return {
        "id": fact.id,
        "scope": fact.scope,
        "number": fact.number,
        "kind": fact.kind.value,
        "text": fact.text,
        "state": fact.state.value,
        "pinned": bool(fact.pinned),
        "version": fact.version,
        "written_by": fact.written_by.value,
        "source": describe_source(fact, is_there=is_there),
        "conversation": fact.conversation,
        "seq": fact.seq,
        "replaces": fact.replaces,
        "uses": fact.uses,
        "created_at": from_millis(fact.created_at).isoformat(),
    }


def answer_proposals(t: Tx, memory: Scope, words: Sequence[str]) -> str:
    """
    Make facts of the proposals that a person names; what is not accepted is declined.

    :raises UsageError: if it is no answer
    """
    writing.lock_scope(t, memory)
    waiting = proposals.list_waiting(t, memory)
    chosen = _choose_proposals(t, memory, words, waiting)
    made = [proposals.accept(t, one) for one in chosen]
    left = [one for one in waiting if one not in chosen]
    for one in left:
        proposals.decline(t, one)
    lines = [f"Remembered as {format_fact(one)}" for one in made]
    return "\n".join([*lines, *([f"{len(left)} declined."] if left else [])])


def _choose_proposals(
    t: Tx, memory: Scope, words: Sequence[str], waiting: Sequence[Proposal]
) -> Sequence[Proposal]:
    given = [*words[1:]] if words[0] == "accept" else [*words]
    if given == ["none"]:
        return []
    if words[0] != "accept" or not given:
        raise UsageError("write `proposed accept 1 3`, `proposed accept all` or `proposed none`")
    if given == ["all"]:
        return waiting
    return [proposals.get_waiting(t, memory, one) for one in proposals.parse_numbers(given)]


def describe_proposals(t: Tx, memory: Scope) -> list[dict[str, Any]]:
    """Return what is proposed, as programs get it."""
    return [
        {
            "number": one.number,
            "kind": one.kind.value,
            "text": one.text,
            "replaces": one.replaces,
            "conversation": one.conversation,
            "seq": one.seq,
        }
        for one in proposals.list_waiting(t, memory)
    ]
