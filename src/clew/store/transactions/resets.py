"""Resets: the route moves to a new conversation, the old one ends through its queue."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.double_text import DoubleText
from clew.core.inbox import END_COMMAND, InboxKind, InboxOutcome
from clew.core.route import LOCAL, Route
from clew.core.system_note import SystemNote
from clew.core.turn import StopRequest
from clew.store.transactions.chat_notices import notify_chats
from clew.store.transactions.clients import detach_client, is_in_use
from clew.store.transactions.conversations import list_routes, move_route, open_for_route
from clew.store.transactions.inbox import mark_executed
from clew.store.transactions.sessions import end_head, get_head
from clew.store.transactions.turn_queries import find_unfinished_turn, request_stop

if TYPE_CHECKING:
    from clew.core.ids import ClientId, ConversationId, InboxId, SessionId, SessionIdFactory
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.core.session import Session
    from clew.store.contract import Tx


def start_new_conversation(
    t: Tx,
    route: Route,
    *,
    item: InboxId,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
    reason: str,
) -> ConversationId | None:
    """
    Move a route to a new conversation, and queue the end of the old one.

    Returns the old conversation's id, or ``None`` if the route had no other one. The old
    conversation's running turn is asked to stop, open inputs of this route are cancelled,
    and its head ends when the lease holder processes the queued item. Repeating it with the
    same ``new_conversation`` changes nothing.
    """
    session = open_for_route(t, route, new_conversation, session_ids)
    old = move_route(t, route.key, new_conversation)
    if old is None or old == new_conversation:
        return None
    t.execute(
        """
        UPDATE inbox SET outcome = $3, note = $4, resolved_at = $5
        WHERE conversation_id = $1 AND route = $2 AND outcome IS NULL AND kind <> 'completion'
        """,
        old,
        route.key,
        InboxOutcome.CANCELLED.value,
        SystemNote.CONVERSATION_RESET.value,
        t.now,
    )
    # What has ended is still told to the agent, but no more in this chat.
    t.execute(
        "UPDATE inbox SET route = NULL "
        "WHERE conversation_id = $1 AND route = $2 AND outcome IS NULL AND kind = 'completion'",
        old,
        route.key,
    )
    if turn := find_unfinished_turn(t, old):
        request_stop(t, turn.id, StopRequest.INTERRUPT)
    queue_end(t, old, route.key, item, reason, following=session)
    t.notify(old)
    return old


def queue_end(
    t: Tx,
    conversation: ConversationId,
    route: str | None,
    item: InboxId,
    reason: str,
    *,
    following: SessionId | None = None,
) -> None:
    """Queue the end of the head, once; the next lease holder executes it."""
    t.execute(
        """
        INSERT INTO inbox (id, conversation_id, route, kind, text, payload, double_text,
                           received_at,
                           due_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) ON CONFLICT (id) DO NOTHING
        """,
        item,
        conversation,
        route,
        InboxKind.COMMAND.value,
        END_COMMAND,
        json.dumps({"reason": reason, "next": following}),
        DoubleText.QUEUE.value,
        t.now,
    )


def execute_end(t: Tx, lease: Lease, item: InboxItem, *, notice: str | None = None) -> Session:
    """
    End the head for the queued reason and mark the item as executed, in one commit.

    The item's note names the ended session and the one that its route continues in. There
    is no ended session if it had ended before, or if the conversation is in use again after
    the close of a client. If it ended now, its chats receive the ``notice``, except the one
    that ended it.

    :raises LeaseLost: if the lease is not held any more
    """
    filed = json.loads(item.payload)
    before = get_head(t, lease.conversation_id)
    late = filed["reason"] == reasons.TUI_CLOSE and is_in_use(t, lease.conversation_id)
    session = before if late else end_head(t, lease, filed["reason"])
    ended = session.id if before.is_open and not session.is_open else None
    if ended is not None:
        routes = list_routes(t, lease.conversation_id)
        notify_chats(t, lease.conversation_id, routes, notice, event=item.id, but=item.route)
    told = {"session": ended, "next": filed.get("next"), "platform": _home_platform(t, item)}
    mark_executed(t, item.id, note=json.dumps(told))
    return session


def _home_platform(t: Tx, item: InboxItem) -> str:
    """Return the platform of the conversation: a chat platform if a route of one leads there."""
    keys = [item.route] if item.route else list_routes(t, item.conversation_id)
    platforms = [Route.parse(key).platform for key in keys]
    return next((name for name in platforms if name != LOCAL), LOCAL)


def close_client(t: Tx, client: ClientId, *, item: InboxId) -> ConversationId | None:
    """
    Detach a client, and queue the end of its conversation if it was the last one.

    Returns that conversation if its end was queued. With other clients attached or a
    channel route to the conversation, it only detaches.
    """
    conversation = detach_client(t, client)
    if conversation is None or is_in_use(t, conversation):
        return None
    queue_end(t, conversation, None, item, reasons.TUI_CLOSE)
    t.notify(conversation)
    return conversation
