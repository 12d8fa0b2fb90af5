"""The end of children: their answer reaches the conversation that asked, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.completion import Cause, NewCompletion, make_completion_id
from clew.core.entry import EntryKind, Role
from clew.core.ids import InboxId
from clew.core.turn import StopRequest, TurnOutcome
from clew.features.delegation.children import (
    Child,
    ChildState,
    find_child,
    list_children_of_turn,
    list_running_children,
    lock_child,
)
from clew.features.delegation.wording import ABOVE, format_answer
from clew.store.transactions import entries, journal
from clew.store.transactions.completions import accept_completion
from clew.store.transactions.grants import is_tainted
from clew.store.transactions.inbox import cancel_item
from clew.store.transactions.sessions import get_head
from clew.store.transactions.turn_queries import (
    find_last_done_turn,
    find_unfinished_turn,
    get_turn,
    request_stop,
)

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.turn import Turn
    from clew.store.contract import Tx

#: What has happened to a conversation since, by the reason for which its session was opened.
_LATE = {
    "compression": "the conversation was summarised",
    "rewind": "messages were taken back",
    "restore": "a summary was undone",
    "reload": "its tools were loaded again",
    "reopen": "the conversation was closed",
}


def on_turn_end(t: Tx, turn: Turn) -> None:
    """Settle the child whose turn ends, and stop those for which the turn waited."""
    if (child := lock_child(t, turn.conversation_id)) is not None:
        settle_child(t, child, turn)
    for waited in list_children_of_turn(t, turn.id):
        if not waited.background:
            _leave_child(t, waited)


def _leave_child(t: Tx, child: Child) -> None:
    """Record that nobody waits for a child any more, unless its answer is in the call."""
    call = journal.find_call(t, child.call_key)
    if call is not None and call.status is not None:
        return
    if child.is_running:
        stop_child(t, child, reason="caller")
    elif child.reason is None:
        t.execute(
            "UPDATE delegation_child SET reason = 'caller' WHERE conversation_id = $1",
            child.conversation_id,
        )


def settle_child(t: Tx, child: Child, turn: Turn) -> None:
    """End a child with the answer of its turn, unless something in it goes on."""
    if not child.is_running or _goes_on(t, child):
        return
    match turn.outcome:
        case TurnOutcome.ANSWERED:
            state, reason = ChildState.DONE, child.reason
        case TurnOutcome.FAILED:
            state, reason = ChildState.FAILED, turn.error or "it failed"
        case _:
            state, reason = ChildState.STOPPED, child.reason or "stopped"
    end_child(t, child, state, reason=reason, turn=turn)


def _goes_on(t: Tx, child: Child) -> bool:
    """
    Return whether another turn of the child will answer; not once it was told to stop.

    Those in the foreground tell nothing: the turn has ended without them.
    """
    if child.reason is not None:
        return False
    waiting = t.exists(
        """
        SELECT 1 FROM inbox
        WHERE conversation_id = $1 AND outcome IS NULL AND kind IN ('message', 'completion') LIMIT 1
        """,
        child.conversation_id,
    )
    below = list_running_children(t, child.conversation_id)
    return waiting or any(one.background for one in below)


def end_child(
    t: Tx, child: Child, state: ChildState, *, reason: str | None, turn: Turn | None
) -> bool:
    """Record how a child has ended, once; nobody waits for one in the background: it is told."""
    ended = t.execute(
        """
        UPDATE delegation_child SET state = $2, reason = $3, turn = $4, ended_at = $5
        WHERE conversation_id = $1 AND state = 'running'
        """,
        child.conversation_id,
        state.value,
        reason,
        None if turn is None else turn.id,
        t.now,
    )
    if not ended:
        return False
    after = find_child(t, child.conversation_id)
    assert after is not None
    if is_tainted(t, child.conversation_id):
        journal.mark_untrusted(t, child.call_key)
    if after.background:
        _hand_over(t, after)
    t.notify(child.conversation_id)
    return True


def _hand_over(t: Tx, child: Child) -> None:
    """Tell the parent of the end, unless whoever stopped it knows, or nothing more runs there."""
    parent = find_child(t, child.parent_conversation)
    is_over = parent is not None and (not parent.is_running or parent.reason is not None)
    if child.reason == ABOVE or is_over:
        t.execute(
            "UPDATE delegation_child SET reason = COALESCE(reason, 'caller')"
            " WHERE conversation_id = $1",
            child.conversation_id,
        )
    else:
        _tell_parent(t, child)


def _tell_parent(t: Tx, child: Child) -> None:
    name = f"{child.conversation_id}_{child.round}"
    told = accept_completion(
        t,
        NewCompletion(
            id=make_completion_id(name),
            conversation=child.parent_conversation,
            text=format_answer(child, read_answer(t, child), late=_find_delay(t, child)),
            cause=Cause(kind="agent", id=child.conversation_id),
            turn=child.parent_turn,
            untrusted=is_tainted(t, child.conversation_id),
        ),
    )
    t.execute(
        "UPDATE delegation_child SET woken = $2, reason = COALESCE(reason, $3)"
        " WHERE conversation_id = $1",
        child.conversation_id,
        make_completion_id(name) if told else None,
        None if told else "parent",
    )


def _find_delay(t: Tx, child: Child) -> str | None:
    """Return what has happened to the asking conversation since; ``None`` for nothing."""
    if not t.exists("SELECT 1 FROM head WHERE conversation_id = $1", child.parent_conversation):
        return None
    head = get_head(t, child.parent_conversation)
    if head.id != child.parent_session:
        return _LATE.get(head.opened_by, "the conversation went on")
    return None if head.is_open else _LATE["reopen"]


def read_answer(t: Tx, child: Child) -> str:
    """Return the answer of a child, or what there is of one."""
    if child.turn is None:
        return ""
    turn = get_turn(t, child.turn)
    end = entries.read_turn_end(t, turn)
    if turn.outcome is TurnOutcome.ANSWERED:
        # The last message; where it has no text, a notice stands for it.
        message = next((one for one in end if one.kind is EntryKind.MESSAGE), None)
        is_text = message is not None and message.role is Role.ASSISTANT
        return message.text if message and is_text and message.text.strip() else end[-1].text
    said = [text for text in entries.read_assistant_texts(t, turn) if text.strip()]
    return "\n\n".join(said)


def stop_child(t: Tx, child: Child, *, reason: str) -> None:
    """Stop a child and all below it; what it has so far stays."""
    t.execute(
        "UPDATE delegation_child SET reason = $2 WHERE conversation_id = $1 AND state = 'running'",
        child.conversation_id,
        reason,
    )
    for below in list_running_children(t, child.conversation_id):
        stop_child(t, below, reason=reason)
    for item in t.fetch_column(
        "SELECT id FROM inbox WHERE conversation_id = $1 AND outcome IS NULL ORDER BY n",
        child.conversation_id,
    ):
        cancel_item(t, InboxId(item), note=reason)
    if (turn := find_unfinished_turn(t, child.conversation_id)) is not None:
        # Its end settles the child.
        request_stop(t, turn.id, StopRequest.STOP)
        return
    last = find_last_done_turn(t, child.conversation_id)
    end_child(t, child, ChildState.STOPPED, reason=reason, turn=last)


def stop_below(t: Tx, conversation: ConversationId) -> bool:
    """Stop everything that works for a conversation; return whether there was anything."""
    found = [one for one in list_running_children(t, conversation) if one.reason is None]
    for child in found:
        stop_child(t, child, reason=ABOVE)
    return bool(found)
