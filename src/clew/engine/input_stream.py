"""The events of one input: those of the turn that answers it, and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew import wording
from clew.agent import messages
from clew.core.entry import EntryKind, Role
from clew.core.events import (
    ConversationStateChanged,
    Delta,
    EntryAppended,
    InputCompleted,
    Retracted,
    Snapshot,
    ToolCalled,
    TurnFinished,
    TurnStarted,
)
from clew.core.turn import TurnOutcome, TurnState
from clew.engine.event_bus import StoreChanged
from clew.engine.store_retry import RETRY_TIMEOUT, retry_while_unavailable
from clew.store.transactions import conversation_state, conversations, entries, inbox

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from clew.core.conversation_state import ConversationState
    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId, InboxId, TurnId
    from clew.core.turn import Turn
    from clew.engine.event_bus import EventBus, Subscriber
    from clew.store.contract import Store, Tx


async def stream_input(
    store: Store,
    hub: EventBus,
    conversation: ConversationId,
    inbox_id: InboxId,
    *,
    live: bool = True,
    with_standing: bool = False,
) -> AsyncGenerator[ConversationEvent | InputCompleted]:
    """
    Yield the live events of the turn that answers an input, and last its result.

    A late caller first gets the text so far. The result comes once, wherever the turn runs
    and however often it is resumed. A caller that needs only the result (not ``live``)
    causes no model stream. With ``with_standing`` the state of the conversation is
    included: at first, and whenever it changes.

    :raises StoreUnavailable: if the store was unavailable for ``RETRY_TIMEOUT`` seconds
    :raises StoreError: if the work on the input cannot be stored; it is retried
        nevertheless
    """
    known, _ = hub.get_store_failure(conversation)
    with hub.subscribe(conversation, live=live) as follower:
        if snapshot := hub.get_snapshot(conversation):
            follower.put(snapshot)
        turn: TurnId | None = None
        state: ConversationState | None = None
        while True:
            if ended := await retry_while_unavailable(
                lambda: store.read(read_input_result, inbox_id), longest=RETRY_TIMEOUT
            ):
                yield ended
                return
            times, error = hub.get_store_failure(conversation)
            if error is not None and times > known:
                raise error
            known = times
            if turn is None:
                turn = await retry_while_unavailable(
                    lambda: _find_turn_id(store, inbox_id), longest=RETRY_TIMEOUT
                )
            if with_standing and state != (state := await _read_state(store, conversation)):
                yield ConversationStateChanged(standing=state)
            async for event in _iter_until_change(follower, turn):
                yield event


async def _iter_until_change(
    follower: Subscriber, turn: TurnId | None
) -> AsyncIterator[ConversationEvent]:
    """Yield the turn's live events until the store may have changed."""
    while True:
        event = await follower.get()
        if isinstance(event, (StoreChanged, TurnFinished)):
            return
        if isinstance(event, TurnStarted) and turn is None:
            return
        if _get_turn_id(event) == turn:
            yield event


def _get_turn_id(event: ConversationEvent) -> TurnId | None:
    match event:
        case Delta(turn=turn) | Snapshot(turn=turn) | Retracted(turn=turn) | ToolCalled(turn=turn):
            return turn
        case TurnStarted(turn=turn) | TurnFinished(turn=turn):
            return turn.id
        case EntryAppended(entry=entry):
            return entry.turn_id
        case ConversationStateChanged():
            return None


async def _find_turn_id(store: Store, inbox_id: InboxId) -> TurnId | None:
    turn = await store.read(inbox.find_turn_of_item, inbox_id)
    return None if turn is None else turn.id


async def _read_state(store: Store, conversation: ConversationId) -> ConversationState:
    return await retry_while_unavailable(
        lambda: store.read(conversation_state.get_conversation_state, conversation),
        longest=RETRY_TIMEOUT,
    )


def read_input_result(t: Tx, inbox_id: InboxId) -> InputCompleted | None:
    """Return the result of an input; ``None`` while it waits or its turn is unfinished."""
    item = inbox.get_item(t, inbox_id)
    if item.outcome is None:
        return None
    turn = inbox.find_turn_of_item(t, inbox_id)
    if turn is not None and turn.state is not TurnState.DONE:
        return None
    text, notices, cut = ("", (), False) if turn is None else _read_turn_texts(t, turn)
    return InputCompleted(
        inbox_id=inbox_id,
        conversation=item.conversation_id,
        session=conversations.get_conversation(t, item.conversation_id).head,
        outcome=item.outcome,
        turn=turn,
        text=text,
        note=wording.describe_note(item.note),
        notices=notices,
        cut=cut,
    )


def _read_turn_texts(t: Tx, turn: Turn) -> tuple[str, tuple[str, ...], bool]:
    """Return a turn's final text, its notices, and whether the text was truncated."""
    found = entries.read_turn_end(t, turn)
    events = tuple(entry.text for entry in found if entry.kind is EntryKind.EVENT)
    if turn.outcome is not TurnOutcome.ANSWERED:
        # The last one describes the outcome itself.
        return turn.error or "", events[:-1], False
    message = next((entry for entry in found if entry.kind is EntryKind.MESSAGE), None)
    if message is not None and message.role is Role.ASSISTANT and message.text.strip():
        return message.text, events, messages.is_truncated(message.message)
    if found and found[-1].kind is EntryKind.EVENT:
        return events[-1], events[:-1], False
    return "", events, False
