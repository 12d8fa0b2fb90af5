"""Expiry: the next message leaves an expired conversation, or the watcher ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import from_millis, to_millis
from clew.core import session as reasons
from clew.core.channel_events import ChatNotice, OutboundMessage
from clew.core.expiry_notice import ExpiredConversation, attach_notice
from clew.core.ids import ConversationId, InboxId
from clew.core.reset_policy import ResetPolicy, expiry_cutoff, expiry_reason
from clew.record import replace
from clew.store.transactions.chat_notices import notify_chats
from clew.store.transactions.conversations import list_routes, resolve_route
from clew.store.transactions.resets import queue_end, start_new_conversation
from clew.store.transactions.sessions import get_head

if TYPE_CHECKING:
    from clew.core.ids import SessionIdFactory
    from clew.core.inbox import NewInput
    from clew.core.route import Route
    from clew.store.contract import Tx

#: A message on the route does not reopen a conversation that ended for one of these reasons.
RESET_REASONS = frozenset({reasons.RESET, reasons.IDLE, reasons.DAILY})


def leave_expired_conversation(
    t: Tx,
    item: NewInput,
    route: Route,
    *,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
    policy: ResetPolicy,
) -> NewInput:
    """
    Move a route to a new conversation if its current one has expired.

    The old one is ended through its own queue. Return the input, whose payload then names
    the conversation that was left.
    """
    current = resolve_route(t, route.key)
    reason = None if current is None else find_expiry_reason(t, current, policy)
    if current is None or reason is None:
        return item
    left = ExpiredConversation(conversation=current, reason=reason)
    start_new_conversation(
        t,
        route,
        item=_end_item_id(item.id),
        new_conversation=new_conversation,
        session_ids=session_ids,
        reason=reason,
    )
    if reason != reasons.RESET:
        # If another front ended it, the chat was notified at that time.
        notice = OutboundMessage(
            notice=ChatNotice.EXPIRED, details=(left.conversation, left.reason), markup=False
        )
        notify_chats(t, new_conversation, [route.key], notice, event=item.id)
    return replace(item, payload=attach_notice(item.payload, left))


def _end_item_id(inbox_id: InboxId) -> InboxId:
    return InboxId(f"{inbox_id}e")


def find_expiry_reason(t: Tx, conversation: ConversationId, policy: ResetPolicy) -> str | None:
    """
    Return why a conversation has expired: its end reason, or the policy's; else ``None``.

    The policy applies only while nothing is open in it. A route that was moved to it
    afterwards counts as the wish to continue it.
    """
    head = get_head(t, conversation)
    moved_at = _last_moved_at(t, conversation)
    if head.ended_at is not None:
        chosen = to_millis(head.ended_at) < moved_at
        return head.end_reason if head.end_reason in RESET_REASONS and not chosen else None
    if _has_open_work(t, conversation):
        return None
    row = t.fetch_one(
        "SELECT updated_at, last_seq FROM lease WHERE conversation_id = $1", conversation
    )
    if row is None:
        return None
    updated_at, last_seq = row
    if last_seq == 0:
        return None
    last_used = from_millis(max(updated_at, moved_at))
    return expiry_reason(policy, last_used=last_used, now=from_millis(t.now))


def _last_moved_at(t: Tx, conversation: ConversationId) -> int:
    """Return when a route was last moved there; 0 if none leads there."""
    return (
        t.fetch_value("SELECT max(moved_at) FROM route WHERE conversation_id = $1", conversation)
        or 0
    )


def _has_open_work(t: Tx, conversation: ConversationId) -> bool:
    return t.exists(
        """
        SELECT 1 WHERE EXISTS (
            SELECT 1 FROM inbox WHERE conversation_id = $1 AND outcome IS NULL
        ) OR EXISTS (SELECT 1 FROM turn WHERE conversation_id = $1 AND state <> 'done')
        """,
        conversation,
    )


def list_expired_conversations(
    t: Tx, *, policy: ResetPolicy, limit: int = 50
) -> list[ConversationId]:
    """Return at most ``limit`` open conversations that have expired under the policy."""
    return t.fetch_column(
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


def queue_expired_ends(t: Tx, *, policy: ResetPolicy, limit: int = 50) -> int:
    """
    Queue the end of at most ``limit`` expired conversations, and return their count.

    Their routes stay: the next message there starts a new conversation.
    """
    return sum(
        _queue_end_if_expired(t, each, policy)
        for each in list_expired_conversations(t, policy=policy, limit=limit)
    )


def _queue_end_if_expired(t: Tx, conversation: ConversationId, policy: ResetPolicy) -> bool:
    # The route is locked as accept_input locks it, so no message lands between check and insert.
    for key in list_routes(t, conversation):
        t.fetch_one("SELECT key FROM route WHERE key = $1 @LOCK", key)
    reason = find_expiry_reason(t, conversation, policy)
    if reason is None:
        return False
    last_seq = t.fetch_value("SELECT last_seq FROM lease WHERE conversation_id = $1", conversation)
    queue_end(t, conversation, None, InboxId(f"inb_{conversation}_{last_seq}"), reason)
    t.notify(conversation)
    return True
