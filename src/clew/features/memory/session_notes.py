"""The facts that sessions are told: the core when one opens, and changes with each message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.clock import to_millis
from clew.features.memory import facts
from clew.features.memory.facts import SHARED, FactState
from clew.features.memory.memories import find_memory
from clew.features.memory.searching import RECALL
from clew.features.memory.wording import (
    MAX_CORE,
    choose_told,
    format_changes,
    format_note,
    format_recalled,
    render_core,
)
from clew.plugin import Note
from clew.store.transactions.sessions import get_session

if TYPE_CHECKING:
    from clew.core.scope import Scope
    from clew.features.memory.facts import Fact
    from clew.plugin import TurnContext
    from clew.store.contract import Tx

#: Facts that join the first message of a session, and characters of it that are searched for.
_MAX_RECALLED: Final = 3
_MAX_QUERY: Final = 500


def render_for(t: Tx, context: TurnContext) -> str | None:
    """Return what a session is told when it opens."""
    memory = find_memory(t, context.scope, context.profile)
    return None if memory is None else render(t, memory)


def render(t: Tx, scope: Scope) -> str | None:
    """Return the facts of a scope that sessions are told when they open."""
    own, shared = _list_ranked(t, scope)
    scopes = facts.list_visible_scopes(scope)
    return render_core(own, shared, known=sum(facts.count_active(t, one) for one in scopes))


def _list_ranked(t: Tx, scope: Scope) -> tuple[list[Fact], list[Fact]]:
    """Return the first facts of a scope, and of everybody, in the order in which they are told."""
    own, shared = (
        facts.list_ranked(t, one, limit=MAX_CORE // 8) for one in facts.list_visible_scopes(scope)
    )
    return own, shared


def make_note(t: Tx, context: TurnContext, *, recalls: bool) -> list[Note]:
    """
    Return what has changed since the session was told, and record that it is told now.

    With ``recalls`` also what is known about its first message, beside the core.
    """
    own = find_memory(t, context.scope, context.profile)
    if own is None:
        return []
    behind = t.fetch_all(
        """
        SELECT s.scope, s.version, m.version FROM memory_scope s
        LEFT JOIN memory_mark m ON m.scope = s.scope AND m.session = $1
        WHERE s.scope IN ($2, $3) AND (m.version IS NULL OR m.version < s.version)
        ORDER BY s.scope
        """,
        context.session,
        *facts.list_visible_scopes(own),
    )
    is_first = any(told is None for _, _, told in behind)
    lines: list[str] = []
    for scope, now, told in behind:
        _mark(t, context, scope, now)
        after = _find_told(t, context, scope, now) if told is None else told
        lines += _list_news(t, scope, after, now)
    notes = [Note(text=format_note(lines))] if lines else []
    if recalls and is_first and (found := _recall(t, context, own)):
        notes.append(Note(text=format_recalled(found)))
    return notes


def _recall(t: Tx, context: TurnContext, own: Scope) -> list[Fact]:
    """Return the facts that the message which begins is about, without those of the core."""
    said = t.fetch_value(
        """
        SELECT text FROM inbox
        WHERE conversation_id = $1 AND kind = 'message' AND outcome IS NULL ORDER BY n LIMIT 1
        """,
        context.conversation,
    )
    if not said or not said.strip():
        return []
    core = {fact.id for one in choose_told(*_list_ranked(t, own)) for fact in one}
    found = RECALL.find_facts(t, said[:_MAX_QUERY], own, limit=_MAX_RECALLED + len(core))
    return [fact for fact in found if fact.id not in core][:_MAX_RECALLED]


def _find_told(t: Tx, context: TurnContext, scope: Scope, now: int) -> int:
    """Return the version that a session without a mark knows."""
    session = get_session(t, context.session)
    if session.instructions is None:
        return now  # they are still to be made, and tell everything
    # They were made after it opened: what changed in between is told once more.
    return facts.read_version_at(t, scope, to_millis(session.opened_at))


def _list_news(t: Tx, scope: Scope, told: int, now: int) -> list[str]:
    changed = facts.list_changed(t, scope, after=told, upto=now)
    active = [one for one in changed if one.state is FactState.ACTIVE]
    ended = [one.number for one in changed if one.state is not FactState.ACTIVE]
    return format_changes(active, ended, shared=scope == SHARED)


def _mark(t: Tx, context: TurnContext, scope: Scope, version: int) -> None:
    t.execute(
        """
        INSERT INTO memory_mark (session, scope, conversation, version) VALUES ($1, $2, $3, $4)
        ON CONFLICT (session, scope) DO UPDATE SET version = excluded.version
        """,
        context.session,
        scope,
        context.conversation,
        version,
    )
