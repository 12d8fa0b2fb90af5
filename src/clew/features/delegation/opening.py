"""Opening of children: the row, the conversation and its first input are one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.completion import TASK, Cause, make_completion_id, write_task_payload
from clew.core.double_text import DoubleText
from clew.core.ids import new_session_id
from clew.core.text import truncate_text
from clew.errors import UsageError
from clew.features.delegation.children import (
    Child,
    ChildState,
    find_child,
    insert_child,
    make_child_id,
)
from clew.features.delegation.kinds import make_profile
from clew.features.delegation.wording import format_task
from clew.record import Record, replace
from clew.store.transactions import conversations
from clew.store.transactions import settings as stored_settings
from clew.store.transactions.completions import accept_direct_input
from clew.store.transactions.inbox import read_payloads
from clew.store.transactions.sessions import get_head

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.features.delegation.kinds import TaskTerms
    from clew.features.delegation.settings import AgentKind, DelegationSettings
    from clew.plugin import TurnContext
    from clew.store.contract import Tx

#: Characters of a task, and of its title.
MAX_TASK: Final = 50_000
_MAX_TITLE: Final = 60


class TaskRequest(Record):
    """A task as the model of a turn asks for it."""

    task: str
    agent: str = ""
    background: bool = False


def open_child(t: Tx, context: TurnContext, request: TaskRequest, terms: TaskTerms) -> Child | None:
    """
    Open the conversation of a task and accept the task in it.

    ``None`` while its tree has no place for it. The same call returns the first child.

    :raises UsageError: if the task is wrong or nested too deeply, or its kind does not exist
    """
    key = context.call_key
    assert key is not None
    conversation = make_child_id(key)
    if (known := find_child(t, conversation)) is not None:
        return known
    _check_request(request)
    settings, kind = terms.limits, terms.find_kind(request.agent)
    parent = find_child(t, context.conversation)
    depth = 1 if parent is None else parent.depth + 1
    if depth > settings.depth:
        raise UsageError(
            f"a task may be nested {settings.depth} deep, and this one would be {depth}: do it "
            "yourself"
        )
    child = Child(
        conversation_id=conversation,
        parent_conversation=context.conversation,
        parent_session=get_head(t, context.conversation).id,
        parent_turn=key.turn_id,
        parent_step=key.step,
        parent_call=key.call_id,
        root=context.conversation if parent is None else parent.root,
        depth=depth,
        route=context.route if parent is None else parent.route,
        agent=request.agent,
        title=truncate_text(" ".join(request.task.split()), _MAX_TITLE),
        max_tokens=limit_budget(settings.tokens, kind and kind.tokens),
        max_steps=limit_budget(settings.steps, kind and kind.steps),
        kind_tokens=kind and kind.tokens,
        kind_steps=kind and kind.steps,
        warned_at=None,
        background=request.background,
        state=ChildState.RUNNING,
        reason=None,
        round=1,
        turn=None,
        woken=None,
        created_at=t.now,
        ended_at=None,
    )
    if not _has_place(t, child, settings.at_once):
        return None
    insert_child(t, child)
    _accept_task(t, child, context, request.task)
    _set_up_agent(t, child, context, request.agent, kind)
    return child


def limit_budget(most: int, own: int | None) -> int:
    """Return a limit of the settings, or that of a kind of agent if it is lower."""
    return most if own is None else min(most, own)


def reserve_place(t: Tx, child: Child, settings: DelegationSettings) -> None:
    """
    Check that a child that has ended may work on in the background.

    :raises UsageError: if its tree has no place for it
    """
    if not _has_place(t, replace(child, background=True), settings.at_once):
        raise UsageError(f"{settings.at_once} tasks run already: wait for the end of one")


def _check_request(request: TaskRequest) -> None:
    if not request.task.strip():
        raise UsageError("a task needs a text that says what is to be done")
    if len(request.task) > MAX_TASK:
        raise UsageError(
            f"the task has {len(request.task):,} characters, and {MAX_TASK:,} may be: write it "
            "into a file"
        )


def _lock_tree(t: Tx, root: ConversationId) -> None:
    """Let no other process open a child of the tree until the commit."""
    t.execute(
        "INSERT INTO delegation_tree (root, opened_at) VALUES ($1, $2)"
        " ON CONFLICT (root) DO NOTHING",
        root,
        t.now,
    )
    t.fetch_one("SELECT 1 FROM delegation_tree WHERE root = $1 @LOCK", root)


def _has_place(t: Tx, child: Child, at_once: int) -> bool:
    """
    Return whether the child may run beside the others of its tree.

    Those that wait for a child of their own do not count, and the parent of one in the
    foreground is about to: so the deepest can always go on, and no tree waits for itself.
    """
    _lock_tree(t, child.root)
    working = t.fetch_column(
        """
        SELECT c.conversation_id FROM delegation_child c
        WHERE c.root = $1 AND c.state = 'running' AND NOT EXISTS (
            SELECT 1 FROM delegation_child d WHERE d.parent_conversation = c.conversation_id
              AND d.state = 'running' AND d.background = 0
        )
        """,
        child.root,
    )
    waits = not child.background and child.parent_conversation in working
    return len(working) - int(waits) < at_once


def _set_up_agent(
    t: Tx, child: Child, context: TurnContext, name: str, kind: AgentKind | None
) -> None:
    """Store what the agent is told and held to: later settings do not change it."""
    profile = make_profile(context.profile, name, kind)
    if profile is not None:
        stored_settings.set_agent_profile(t, child.conversation_id, profile)
    if kind is not None and kind.model is not None:
        stored_settings.set_model(t, child.conversation_id, kind.model)


def _accept_task(t: Tx, child: Child, context: TurnContext, task: str) -> None:
    conversations.open_conversation(
        t,
        child.conversation_id,
        scope=context.scope,
        session_ids=new_session_id,
        origin=child.parent_conversation,
        origin_seq=conversations.get_conversation(t, child.parent_conversation).last_seq,
        adhoc=True,
    )
    payload = write_task_payload(
        Cause(kind=TASK, id=child.conversation_id),
        child.title,
        read_payloads(t, child.parent_turn),
        attended=context.attended,
        hops=context.hops,
    )
    accept_direct_input(
        t,
        make_completion_id(f"{child.conversation_id}_task"),
        format_task(task),
        payload,
        conversation=child.conversation_id,
        double_text=DoubleText.QUEUE,
        answer_to=child.route,
    )
