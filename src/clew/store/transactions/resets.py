"""Starting afresh: the route moves to a new conversation, the old one is ended in its own line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.double_text import DoubleText
from clew.core.expired import closed_elsewhere_notice
from clew.core.inbox import InboxKind, InboxOutcome
from clew.core.route import LOCAL, Route
from clew.core.scope import scope_of
from clew.core.turn import StopRequest
from clew.store.transactions.clients import detach, wanted
from clew.store.transactions.conversations import move_route, open_conversation, routes_of
from clew.store.transactions.elsewhere import tell_chats
from clew.store.transactions.inbox import executed
from clew.store.transactions.sessions import end_head, get_head
from clew.store.transactions.stops import request_stop, unfinished_turn

if TYPE_CHECKING:
    from clew.core.ids import ClientId, ConversationId, InboxId, SessionId, SessionIdFactory
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.core.session import Session
    from clew.store.contract import Tx

END = "end"


def start_afresh(
    t: Tx,
    route: Route,
    *,
    item: InboxId,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
    reason: str,
) -> ConversationId | None:
    """
    Move a route to a new conversation, and file the end of the one that it leaves; that one's id.

    The old conversation's running turn is asked to stop, what waited there for this route is
    cancelled, and its head ends when whoever holds its lease comes to the filed item. Repeating it
    with the same ``new_conversation`` changes nothing.
    """
    session = open_conversation(t, new_conversation, scope=scope_of(route), session_ids=session_ids)
    old = move_route(t, route.key, new_conversation)
    if old is None or old == new_conversation:
        return None
    t.run(
        """
        UPDATE inbox SET outcome = $3, note = 'a new conversation was started', resolved_at = $4
        WHERE conversation_id = $1 AND route = $2 AND outcome IS NULL
        """,
        old,
        route.key,
        InboxOutcome.CANCELLED.value,
        t.now,
    )
    if turn := unfinished_turn(t, old):
        request_stop(t, turn.id, StopRequest.INTERRUPT)
    file_end(t, old, route.key, item, reason, following=session)
    t.wake(old)
    return old


def file_end(
    t: Tx,
    conversation: ConversationId,
    route: str | None,
    item: InboxId,
    reason: str,
    *,
    following: SessionId | None = None,
) -> None:
    """File that the head is to be ended, once; whoever holds the lease next does it."""
    t.run(
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
        END,
        json.dumps({"reason": reason, "next": following}),
        DoubleText.QUEUE.value,
        t.now,
    )


def carry_out_end(t: Tx, lease: Lease, item: InboxItem) -> Session:
    """
    End the head for the reason that was filed, and record that it was done, in one commit.

    The note of the item tells which session ended (none if it had ended before, or if the close of
    a client came too late), and which one its route goes on in.

    :raises LeaseLost: if the lease is not held any more
    """
    filed = json.loads(item.payload)
    before = get_head(t, lease.conversation_id)
    late = filed["reason"] == reasons.TUI_CLOSE and wanted(t, lease.conversation_id)
    session = before if late else end_head(t, lease, filed["reason"])
    ended = session.id if before.is_open and not session.is_open else None
    text = closed_elsewhere_notice(lease.conversation_id, filed["reason"])
    if ended is not None and text is not None:
        routes = routes_of(t, lease.conversation_id)
        tell_chats(t, lease.conversation_id, routes, text, event=item.id, but=item.route)
    told = {"session": ended, "next": filed.get("next"), "platform": _platform(t, item)}
    executed(t, item.id, note=json.dumps(told))
    return session


def _platform(t: Tx, item: InboxItem) -> str:
    """Where the conversation is at home: a chat platform if one leads there."""
    keys = [item.route] if item.route else routes_of(t, item.conversation_id)
    platforms = [Route.parse(key).platform for key in keys]
    return next((name for name in platforms if name != LOCAL), LOCAL)


def close_client(t: Tx, client: ClientId, *, item: InboxId) -> ConversationId | None:
    """
    Detach a client; the conversation whose end was filed with that, if it was its last one.

    Where others are attached or a channel leads to the conversation, it only detaches.
    """
    conversation = detach(t, client)
    if conversation is None or wanted(t, conversation):
        return None
    file_end(t, conversation, None, item, reasons.TUI_CLOSE)
    t.wake(conversation)
    return conversation
