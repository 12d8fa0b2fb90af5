"""Expiry: a conversation that is over is left by the next message, or ended by the watcher."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clew.clock import from_millis, to_millis
from clew.core import session as reasons
from clew.core.expired import ExpiredConversation, attach_notice
from clew.core.ids import ConversationId, InboxId
from clew.core.reset import ResetPolicy, expiry_cutoff, expiry_reason
from clew.core.route import Route
from clew.store.transactions.conversations import route_target, routes_of
from clew.store.transactions.elsewhere import tell_chats
from clew.store.transactions.inbox import accept, is_known
from clew.store.transactions.resets import file_end, start_afresh
from clew.store.transactions.sessions import get_head

if TYPE_CHECKING:
    from clew.core.ids import SessionIdFactory
    from clew.core.inbox import AcceptResult, NewInput
    from clew.store.contract import Tx

#: A conversation that ended so is not gone back to by writing on its route.
OVER = frozenset({reasons.RESET, reasons.IDLE, reasons.DAILY})


def accept_in_time(
    t: Tx,
    item: NewInput,
    *,
    target: Route | ConversationId,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
    policy: ResetPolicy,
) -> AcceptResult:
    """
    Store an input; where its route leads to a conversation that is over, in a new one.

    As ``accept`` otherwise. The conversation that is left is ended in its own line, and the input
    says which one that is.

    :raises NotFound: if the conversation given by id does not exist
    """
    if isinstance(target, Route) and not is_known(t, item):
        current = route_target(t, target.key)
        reason = None if current is None else over(t, current, policy)
        if current is not None and reason is not None:
            left = ExpiredConversation(conversation=current, reason=reason)
            item = replace(item, payload=attach_notice(item.payload, left))
            start_afresh(
                t,
                target,
                item=_end_of(item.id),
                new_conversation=new_conversation,
                session_ids=session_ids,
                reason=reason,
            )
            if reason != reasons.RESET:
                # Of one that was ended elsewhere the chat was told then.
                tell_chats(t, new_conversation, [target.key], left.user_notice, event=item.id)
    return accept(
        t, item, target=target, new_conversation=new_conversation, session_ids=session_ids
    )


def _end_of(inbox_id: InboxId) -> InboxId:
    return InboxId(f"{inbox_id}e")


def over(t: Tx, conversation: ConversationId, policy: ResetPolicy) -> str | None:
    """
    Why a conversation is over: it was ended so, or by the policy with nothing open in it.

    A route that was moved to it since is a person's wish to go on with it.
    """
    head = get_head(t, conversation)
    moved_at = _moved_at(t, conversation)
    if head.ended_at is not None:
        chosen = to_millis(head.ended_at) < moved_at
        return head.end_reason if head.end_reason in OVER and not chosen else None
    if _in_use(t, conversation):
        return None
    row = t.one("SELECT updated_at, last_seq FROM lease WHERE conversation_id = $1", conversation)
    if row is None or row[1] == 0:
        return None
    last_used = from_millis(max(row[0], moved_at))
    return expiry_reason(policy, last_used=last_used, now=from_millis(t.now))


def _moved_at(t: Tx, conversation: ConversationId) -> int:
    """When a route was last moved there; 0 if none leads there."""
    row = t.one("SELECT max(moved_at) FROM route WHERE conversation_id = $1", conversation)
    return 0 if row is None or row[0] is None else row[0]


def _in_use(t: Tx, conversation: ConversationId) -> bool:
    row = t.one(
        """
        SELECT 1 WHERE EXISTS (
            SELECT 1 FROM inbox WHERE conversation_id = $1 AND outcome IS NULL
        ) OR EXISTS (SELECT 1 FROM turn WHERE conversation_id = $1 AND state <> 'done')
        """,
        conversation,
    )
    return row is not None


def overdue(t: Tx, *, policy: ResetPolicy, limit: int = 50) -> list[ConversationId]:
    """At most ``limit`` conversations that are over by the policy and still open."""
    found = t.all(
        """
        SELECT l.conversation_id
        FROM lease l JOIN head h ON h.conversation_id = l.conversation_id
        JOIN session s ON s.id = h.session_id
        WHERE l.updated_at < $1 AND l.last_seq > 0 AND s.ended_at IS NULL
          AND NOT EXISTS (
              SELECT 1 FROM route r
              WHERE r.conversation_id = l.conversation_id AND r.moved_at >= $1
          )
          AND NOT EXISTS (
              SELECT 1 FROM inbox i
              WHERE i.conversation_id = l.conversation_id AND i.outcome IS NULL
          )
          AND NOT EXISTS (
              SELECT 1 FROM turn t
              WHERE t.conversation_id = l.conversation_id AND t.state <> 'done'
          )
        ORDER BY l.updated_at LIMIT $2
        """,
        to_millis(expiry_cutoff(policy, from_millis(t.now))),
        limit,
    )
    return [ConversationId(row[0]) for row in found]


def end_overdue(t: Tx, *, policy: ResetPolicy, limit: int = 50) -> int:
    """
    File the end of at most ``limit`` conversations that are over by the policy; how many.

    Their routes stay: the next message there starts a new conversation.
    """
    return sum(_end_if_over(t, each, policy) for each in overdue(t, policy=policy, limit=limit))


def _end_if_over(t: Tx, conversation: ConversationId, policy: ResetPolicy) -> bool:
    # The route is held as an accept holds it: no message lands between the look and the filing.
    for key in routes_of(t, conversation):
        t.one("SELECT key FROM route WHERE key = $1 @LOCK", key)
    reason = over(t, conversation, policy)
    if reason is None:
        return False
    last = t.one("SELECT last_seq FROM lease WHERE conversation_id = $1", conversation)
    assert last is not None
    file_end(t, conversation, None, InboxId(f"inb_{conversation}_{last[0]}"), reason)
    t.wake(conversation)
    return True
