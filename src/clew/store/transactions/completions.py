"""Completions: accepting one, and what becomes of those that begin no turn."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

from clew.clock import from_millis, to_millis
from clew.core.channel_events import ChatNotice, OutboundMessage
from clew.core.completion import (
    MAX_HOPS,
    UNATTENDED_KEY,
    NewCompletion,
    UnattendedLimits,
    exceeds_hops,
    is_attended,
    read_task,
    window_end,
    write_payload,
)
from clew.core.delivery import DeliveryKind
from clew.core.double_text import DoubleText
from clew.core.ids import DeliveryId, EntryId, new_session_id
from clew.core.inbox import InboxKind, NewInput
from clew.core.route import Route
from clew.core.system_note import SystemNote
from clew.store.transactions import inbox
from clew.store.transactions.conversations import get_scope, resolve_route
from clew.store.transactions.deliveries import deliver_to_chat
from clew.store.transactions.entries import find_entry_seq

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.core.ids import ConversationId, InboxId, TurnId
    from clew.core.inbox import InboxItem
    from clew.core.route import RouteKey
    from clew.core.scope import Scope
    from clew.store.contract import Tx

_DAY_MS: Final = 24 * 3600 * 1000
_NOTICES: Final = {
    SystemNote.ROUNDS_WITHOUT_PERSON: ChatNotice.ROUNDS_WITHOUT_PERSON,
    SystemNote.UNATTENDED_TOKENS_SPENT: ChatNotice.UNATTENDED_TOKENS_SPENT,
}


def accept_completion(t: Tx, new: NewCompletion) -> bool:
    """
    Store that something has ended, for the model; ``False`` if its conversation is gone.

    Repeating it changes nothing. Its answer goes where the turn that began it was asked from,
    as long as that route leads to the conversation; the questions of a task go there anyway.
    """
    if inbox.find_item(t, new.id) is not None:
        return True
    # A shared lock, as with every input: none lands in a conversation that is being deleted.
    head = "SELECT 1 FROM head WHERE conversation_id = $1 @SHARE"
    if t.fetch_one(head, new.conversation) is None:
        return False
    begun_by = [] if new.turn is None else _read_inputs(t, new.turn)
    item = NewInput(
        id=new.id,
        kind=InboxKind.COMPLETION,
        text=new.text,
        double_text=DoubleText.STEER,
        payload=json.dumps(write_payload(new.cause, [payload for _, payload in begun_by])),
        untrusted=new.untrusted,
    )
    routes = [Route.parse(route) for route, _ in begun_by if route is not None]
    is_task = read_task(payload for _, payload in begun_by) is not None
    inbox.accept_input(
        t,
        item,
        target=_find_live_route(t, new.conversation, routes) or new.conversation,
        new_conversation=new.conversation,
        session_ids=new_session_id,
        answer_to=routes[0].key if is_task and routes else None,
    )
    _join_window(t, new.conversation, item.id)
    return True


def accept_direct_input(  # noqa: PLR0913  (each is a field of the input)
    t: Tx,
    item: InboxId,
    text: str,
    payload: Mapping[str, object],
    *,
    conversation: ConversationId,
    double_text: DoubleText,
    answer_to: RouteKey | None,
    kind: InboxKind = InboxKind.COMPLETION,
    untrusted: bool = False,
) -> None:
    """
    Store an input that comes to a conversation by its id, not through a chat.

    ``untrusted``: strangers may have written a part of the text.

    :raises NotFound: if the conversation does not exist
    """
    inbox.accept_input(
        t,
        NewInput(
            id=item,
            kind=kind,
            text=text,
            double_text=double_text,
            payload=json.dumps(payload, ensure_ascii=False),
            untrusted=untrusted,
        ),
        target=conversation,
        # Only a route that is unknown needs them.
        new_conversation=conversation,
        session_ids=new_session_id,
        answer_to=answer_to,
    )


def _read_inputs(t: Tx, turn: TurnId) -> list[tuple[RouteKey | None, str]]:
    return [
        (route, payload)
        for route, payload in t.fetch_all(
            "SELECT route, payload FROM inbox WHERE turn_id = $1 ORDER BY n", turn
        )
    ]


def _find_live_route(t: Tx, conversation: ConversationId, routes: Sequence[Route]) -> Route | None:
    live = (route for route in routes if resolve_route(t, route.key) == conversation)
    return next(live, None)


def _join_window(t: Tx, conversation: ConversationId, new: str) -> None:
    """Have the completions that are not due yet become due together."""
    received = t.fetch_column(
        """
        SELECT received_at FROM inbox
        WHERE conversation_id = $1 AND outcome IS NULL AND kind = 'completion'
              AND due_at > $2 AND id <> $3 ORDER BY n
        """,
        conversation,
        t.now,
        new,
    )
    due_at = to_millis(window_end(from_millis(t.now), earlier=[*map(from_millis, received)]))
    t.execute(
        """
        UPDATE inbox SET due_at = $3
        WHERE conversation_id = $1 AND outcome IS NULL AND kind = 'completion'
              AND (due_at > $2 OR id = $4)
        """,
        conversation,
        t.now,
        max(due_at, t.now),
        new,
    )


def find_hold_reason(
    t: Tx, items: Sequence[InboxItem], limits: UnattendedLimits
) -> SystemNote | None:
    """Return why these inputs begin no turn; ``None`` if they may."""
    if any(item.kind is not InboxKind.COMPLETION for item in items):
        return None
    if is_attended([item.payload for item in items]):
        return None
    conversation = items[0].conversation_id
    ran_on = all(exceeds_hops([item.payload]) for item in items)
    if ran_on and not _has_recent_person(t, conversation):
        return SystemNote.ROUNDS_WITHOUT_PERSON
    if sum_unattended_tokens(t, get_scope(t, conversation)) >= limits.tokens:
        return SystemNote.UNATTENDED_TOKENS_SPENT
    return None


def _has_recent_person(t: Tx, conversation: ConversationId) -> bool:
    """Return whether one of the last turns had a message from a person."""
    return t.exists(
        """
        SELECT 1 FROM inbox i WHERE i.kind = 'message' AND i.turn_id IN (
            SELECT id FROM turn WHERE conversation_id = $1 ORDER BY first_seq DESC LIMIT $2
        ) LIMIT 1
        """,
        conversation,
        MAX_HOPS,
    )


def sum_unattended_tokens(t: Tx, scope: Scope) -> int:
    """Return the tokens of today's turns in a scope that no person began."""
    return int(
        t.fetch_value(
            """
            SELECT COALESCE(sum(u.input_tokens + u.output_tokens), 0)
            FROM usage u JOIN conversation c ON c.id = u.conversation_id
            WHERE u.created_at >= $1 AND c.scope = $2 AND u.turn_id IS NOT NULL
              AND NOT EXISTS (
                  SELECT 1 FROM inbox i WHERE i.turn_id = u.turn_id
                  AND (i.kind <> 'completion' OR i.payload NOT LIKE $3)
              )
            """,
            t.now - t.now % _DAY_MS,
            scope,
            f'%"{UNATTENDED_KEY}": true%',
        )
    )


def make_notice_id(t: Tx, item: InboxItem, reason: SystemNote) -> EntryId | None:
    """
    Return the id of the notice that an input was held back; ``None`` if people know already.

    Of too many rounds they are told until they write, of the tokens once a day.
    """
    if reason is SystemNote.ROUNDS_WITHOUT_PERSON:
        since = t.fetch_value(
            """
            SELECT max(n) FROM inbox
            WHERE conversation_id = $1 AND kind = 'message' AND turn_id IS NOT NULL
            """,
            item.conversation_id,
        )
        told = f"{item.conversation_id}:{since or 0}"
    else:
        told = f"{get_scope(t, item.conversation_id)}:{t.now // _DAY_MS}"
    digest = hashlib.sha256(f"{reason.value}:{told}".encode()).hexdigest()
    entry = EntryId(f"ent_held_{digest[:24]}")
    return None if find_entry_seq(t, entry) is not None else entry


def tell_chat_of_hold(t: Tx, item: InboxItem, notice: EntryId, reason: SystemNote) -> None:
    """Store the notice to the chat that the input belongs to, if there is one."""
    message = OutboundMessage(notice=_NOTICES[reason], markup=False)
    deliver_to_chat(
        t,
        item.conversation_id,
        item.route,
        message,
        id=DeliveryId(f"{notice}.told"),
        kind=DeliveryKind.NOTICE,
    )
