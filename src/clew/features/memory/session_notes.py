"""What sessions are told: the core when one opens, and what has changed with each message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.memory import facts
from clew.features.memory.facts import SHARED, FactState
from clew.features.memory.wording import MAX_CORE, format_changes, format_note, render_core
from clew.plugin import Note

if TYPE_CHECKING:
    from clew.core.scope import Scope
    from clew.plugin import TurnContext
    from clew.store.contract import Tx


def render_and_mark(t: Tx, context: TurnContext) -> str | None:
    """Return what a session is told when it opens, and record how far that goes."""
    # The versions first: what is committed in between is told once more, and never left out.
    scopes = facts.list_visible_scopes(context.scope)
    for scope in scopes:
        _mark(t, context, scope, facts.read_version(t, scope))
    own, shared = (facts.list_ranked(t, scope, limit=MAX_CORE // 8) for scope in scopes)
    return render_core(own, shared, known=sum(facts.count_active(t, scope) for scope in scopes))


def make_note(t: Tx, context: TurnContext) -> list[Note]:
    """Return what has changed since the session was told, and record that it is told now."""
    # Without a mark its instructions are still to be made, and tell everything.
    behind = t.fetch_all(
        """
        SELECT s.scope, m.version, s.version FROM memory_mark m
        JOIN memory_scope s ON s.scope = m.scope AND s.version > m.version
        WHERE m.session = $1 ORDER BY s.scope
        """,
        context.session,
    )
    lines: list[str] = []
    for scope, told, now in behind:
        _mark(t, context, scope, now)
        lines += _list_news(t, scope, told, now)
    return [Note(text=format_note(lines))] if lines else []


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
