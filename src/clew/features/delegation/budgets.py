"""Budgets of children: told to answer when theirs is used, and stopped two steps later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.completion import Cause, make_completion_id, write_payload
from clew.core.double_text import DoubleText
from clew.features.delegation.children import Child, find_child, sum_steps, sum_tree_tokens
from clew.features.delegation.ending import stop_child
from clew.features.delegation.wording import format_budget
from clew.store.transactions.completions import accept_direct_input
from clew.store.transactions.inbox import read_payloads

if TYPE_CHECKING:
    from clew.core.turn import Turn
    from clew.store.contract import Tx

#: Steps in which a child may still answer.
_GRACE: Final = 2


def on_turn_step(t: Tx, turn: Turn) -> None:
    """Look at the budgets of a child whose model asks for calls, and of those above it."""
    child = find_child(t, turn.conversation_id)
    if child is None or not child.is_running:
        return
    steps = sum_steps(t, child.conversation_id)
    if child.warned_at is not None:
        if steps >= child.warned_at + _GRACE:
            stop_child(t, child, reason="budget")
    elif steps >= child.max_steps or _is_spent(t, child):
        _warn(t, child, turn, steps)


def _is_spent(t: Tx, child: Child) -> bool:
    """Return whether the tokens of a child are used, or those of one above it."""
    above: Child | None = child
    while above is not None:
        if sum_tree_tokens(t, above.conversation_id) >= above.max_tokens:
            return True
        above = find_child(t, above.parent_conversation)
    return False


def _warn(t: Tx, child: Child, turn: Turn, steps: int) -> None:
    """Tell a child, with the results of its calls, to answer with what it has."""
    t.execute(
        "UPDATE delegation_child SET warned_at = $2 WHERE conversation_id = $1",
        child.conversation_id,
        steps,
    )
    cause = Cause(kind="budget", id=child.conversation_id)
    accept_direct_input(
        t,
        make_completion_id(f"{child.conversation_id}_budget"),
        format_budget(child),
        write_payload(cause, read_payloads(t, turn.id)),
        conversation=child.conversation_id,
        double_text=DoubleText.STEER,
        answer_to=child.route,
    )
