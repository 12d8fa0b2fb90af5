"""Use cases of tasks, for people, programs and the model on every front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clew.clock import from_millis
from clew.core.completion import TASK, Cause, write_task_payload
from clew.core.double_text import DoubleText
from clew.core.ids import InboxId
from clew.core.inbox import InboxKind
from clew.errors import NotFound, UsageError
from clew.features.delegation.children import (
    CHILDREN,
    Child,
    get_child,
    list_tree,
    sum_steps,
    sum_tree_tokens,
    sum_tree_usage,
)
from clew.features.delegation.ending import read_answer, stop_child
from clew.features.delegation.opening import MAX_TASK, limit_budget, reserve_place
from clew.features.delegation.wording import describe_reason, format_state
from clew.record import Record
from clew.store.transactions import conversations, inbox, journal
from clew.store.transactions.completions import accept_direct_input
from clew.store.transactions.grants import is_tainted

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.journal import CallKey
    from clew.core.scope import Scope
    from clew.features.delegation.settings import DelegationSettings
    from clew.plugin import TurnContext
    from clew.store.contract import Tx

#: Characters of an answer in one reading.
MAX_READ: Final = 20_000


class AnswerPart(Record):
    """A part of the answer of a task."""

    child: Child
    text: str
    #: Where it begins, and the characters of all of it.
    start: int
    size: int


def find_task(t: Tx, name: str, *, viewer: Scope, below: ConversationId | None = None) -> Child:
    """
    Return the task with an id, the first characters of one, or a title.

    With ``below``, only those of this conversation and of the tasks below it.

    :raises NotFound: if there is none, or not exactly one
    """
    found = [
        child
        for child in list_visible(t, viewer=viewer, below=below, done=True)
        if name and (child.conversation_id.startswith((name, f"cnv_{name}")) or child.title == name)
    ]
    exact = [child for child in found if child.conversation_id == name]
    if len(exact or found) != 1:
        raise NotFound("task", name)
    return (exact or found)[0]


def list_visible(
    t: Tx, *, viewer: Scope, below: ConversationId | None = None, done: bool = False
) -> list[Child]:
    """Return the tasks that a viewer may see, the oldest first; with ``done`` the past ones."""
    if below is not None:
        found = list_tree(t, below)
    else:
        found = CHILDREN.fetch_all(
            t,
            """
            WHERE EXISTS (
                SELECT 1 FROM conversation o WHERE o.id = conversation_id
                AND o.deleting_at IS NULL AND ($1 = 'local' OR o.scope = $1)
            ) ORDER BY created_at, conversation_id
            """,
            viewer,
        )
    return [child for child in found if done or child.is_running]


def read_part(t: Tx, child: Child, *, start: int = 0, most: int = MAX_READ) -> AnswerPart:
    """Return a part of what a task has answered, or has said so far."""
    text = read_answer(t, child)
    return AnswerPart(child=child, text=text[start : start + most], start=start, size=len(text))


def read_for_turn(t: Tx, child: Child, key: CallKey, *, start: int) -> AnswerPart:
    """Return the same for the model, whose conversation gets the taint of the task."""
    if is_tainted(t, child.conversation_id):
        journal.mark_untrusted(t, key)
    return read_part(t, child, start=start)


def stop_task(t: Tx, child: Child, *, reason: str) -> Child:
    """Stop a task and all below it; what it has so far becomes its answer."""
    if child.is_running and child.reason is None:
        stop_child(t, child, reason=reason)
    return get_child(t, child.conversation_id)


def tell_from_turn(
    t: Tx, context: TurnContext, child: Child, text: str, settings: DelegationSettings
) -> Child:
    """
    Tell a task something, once for each call; one that has ended works on, in the background.

    :raises UsageError: if there is nothing to tell, or no place for it
    """
    key = context.call_key
    assert key is not None
    item = InboxId(f"inb_{key.make_digest()[:26]}")
    if inbox.find_item(t, item) is not None:
        return child
    child = _reopen(t, child, settings, call=key)
    payload = write_task_payload(
        Cause(kind=TASK, id=child.conversation_id),
        child.title,
        inbox.read_payloads(t, context.turn),
        attended=context.attended,
        hops=context.hops,
    )
    _accept(t, child, item, text, InboxKind.COMPLETION, payload)
    return child


def tell_by_person(
    t: Tx, child: Child, text: str, settings: DelegationSettings, *, item: InboxId
) -> Child:
    """
    Tell a task something as a person; its answer still goes to the conversation that asked.

    :raises UsageError: if there is nothing to tell, or no place for it
    """
    if inbox.find_item(t, item) is None:
        child = _reopen(t, child, settings, call=None)
        _accept(t, child, item, text, InboxKind.MESSAGE, {})
    return child


def as_input(name: str) -> InboxId:
    """Return the id of an input that a front has made."""
    return InboxId(name)


def _accept(
    t: Tx, child: Child, item: InboxId, text: str, kind: InboxKind, payload: dict[str, object]
) -> None:
    if not text.strip() or len(text) > MAX_TASK:
        raise UsageError(f"say what it is told, in at most {MAX_TASK:,} characters")
    accept_direct_input(
        t,
        item,
        text.strip(),
        payload,
        conversation=child.conversation_id,
        double_text=DoubleText.STEER,
        answer_to=child.route if kind is InboxKind.COMPLETION else None,
        kind=kind,
    )


def _reopen(t: Tx, child: Child, settings: DelegationSettings, *, call: CallKey | None) -> Child:
    """Let a task that has ended work on: its next answer is told, with a budget of its own."""
    if child.is_running:
        return child
    if not t.exists("SELECT 1 FROM head WHERE conversation_id = $1", child.parent_conversation):
        raise UsageError("the conversation that asked for it was deleted: /resume it instead")
    reserve_place(t, child, settings)
    key = call or child.call_key
    t.execute(
        """
        UPDATE delegation_child SET state = 'running', reason = NULL, turn = NULL, woken = NULL,
            ended_at = NULL, warned_at = NULL, background = 1, round = round + 1,
            parent_turn = $2, parent_step = $3, parent_call = $4, parent_session = $5,
            max_tokens = $6, max_steps = $7
        WHERE conversation_id = $1
        """,
        child.conversation_id,
        key.turn_id,
        key.step,
        key.call_id,
        conversations.get_conversation(t, child.parent_conversation).head,
        limit_budget(settings.tokens, child.kind_tokens)
        + sum_tree_tokens(t, child.conversation_id),
        limit_budget(settings.steps, child.kind_steps) + sum_steps(t, child.conversation_id),
    )
    return get_child(t, child.conversation_id)


def describe_task(t: Tx, child: Child) -> dict[str, Any]:
    """Return a task as programs get it, with the usage of it and all below it."""
    return {
        "id": child.conversation_id,
        "title": child.title,
        "agent": child.agent or None,
        "state": child.state.value,
        "reason": describe_reason(child.reason),
        "parent": child.parent_conversation,
        "root": child.root,
        "depth": child.depth,
        "background": child.background,
        "started": from_millis(child.created_at).isoformat(),
        "ended": None if child.ended_at is None else from_millis(child.ended_at).isoformat(),
        "steps": sum_steps(t, child.conversation_id),
        "max_steps": child.max_steps,
        "max_tokens": child.max_tokens,
        "waits": _is_waiting(t, child),
        "usage": _describe_usage(t, child.conversation_id),
    }


def _describe_usage(t: Tx, top: ConversationId) -> dict[str, Any]:
    used = sum_tree_usage(t, top)
    return {
        "input_tokens": used.input_tokens,
        "cached_tokens": used.cached_tokens,
        "output_tokens": used.output_tokens,
        "cost_micros": used.cost_micros,
    }


def _is_waiting(t: Tx, child: Child) -> bool:
    """Return whether somebody has to answer a question of the task."""
    return t.exists(
        "SELECT 1 FROM turn WHERE conversation_id = $1 AND state = 'waiting'",
        child.conversation_id,
    )


def describe_tasks(
    t: Tx, *, viewer: Scope, top: ConversationId | None, done: bool
) -> dict[str, Any]:
    """Return the tasks that a viewer may see; of one conversation, with the usage of its tree."""
    found = list_visible(t, viewer=viewer, below=top, done=done)
    return {
        "items": [describe_task(t, child) for child in found],
        "usage": None if top is None else _describe_usage(t, top),
    }


def format_child(t: Tx, child: Child) -> str:
    """Return a task in a line, with what it has used."""
    tokens = sum_tree_tokens(t, child.conversation_id)
    waits = ", waits for an answer of a person" if _is_waiting(t, child) else ""
    indent = "  " * (child.depth - 1)
    kind = f" [{child.agent}]" if child.agent else ""
    return (
        f"{indent}{child.conversation_id}{kind}  {child.title}: {format_state(child)}{waits}, "
        f"{tokens:,} tokens"
    )
