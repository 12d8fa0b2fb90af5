"""What becomes of one input: the events of the turn that answers it, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from clew.engine.hub import Changed
from clew.engine.lasting import PATIENCE, patiently
from clew.store.transactions import conversations, entries, inbox

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId, InboxId, TurnId
    from clew.core.turn import Turn
    from clew.engine.hub import Follower, Hub
    from clew.store.contract import Store, Tx


async def follow_input(
    store: Store,
    hub: Hub,
    conversation: ConversationId,
    inbox_id: InboxId,
    *,
    live: bool = True,
) -> AsyncGenerator[ConversationEvent | InputCompleted]:
    """
    What happens to one input: the live events of the turn that answers it, and last its end.

    Who comes late is told the text so far first. Wherever the turn runs, and however often it is
    resumed, the end comes once. Who waits only for that (not ``live``) makes no model stream.

    :raises StoreUnavailable: when the store was away for ``PATIENCE`` seconds
    :raises StoreError: when the work on the input cannot be stored; it is tried again all the same
    """
    known, _ = hub.held_up(conversation)
    with hub.follow(conversation, live=live) as follower:
        if snapshot := hub.snapshot(conversation):
            follower.put(snapshot)
        turn: TurnId | None = None
        while True:
            if ended := await patiently(lambda: store.read(input_end, inbox_id), longest=PATIENCE):
                yield ended
                return
            times, error = hub.held_up(conversation)
            if error is not None and times > known:
                raise error
            known = times
            if turn is None:
                turn = await patiently(lambda: _turn_of(store, inbox_id), longest=PATIENCE)
            async for event in _until_changed(follower, turn):
                yield event


async def _until_changed(
    follower: Follower, turn: TurnId | None
) -> AsyncIterator[ConversationEvent]:
    """The turn's live events, until something may have changed in the store."""
    while True:
        event = await follower.get()
        if isinstance(event, (Changed, TurnFinished)):
            return
        if isinstance(event, TurnStarted) and turn is None:
            return
        if _turn(event) == turn:
            yield event


def _turn(event: ConversationEvent) -> TurnId | None:
    match event:
        case Delta(turn=turn) | Snapshot(turn=turn) | Retracted(turn=turn) | ToolCalled(turn=turn):
            return turn
        case TurnStarted(turn=turn) | TurnFinished(turn=turn):
            return turn.id
        case EntryAppended(entry=entry):
            return entry.turn_id
        case ConversationStateChanged():
            return None


async def _turn_of(store: Store, inbox_id: InboxId) -> TurnId | None:
    turn = await store.read(inbox.find_turn_of_item, inbox_id)
    return None if turn is None else turn.id


def input_end(t: Tx, inbox_id: InboxId) -> InputCompleted | None:
    """What became of an input; ``None`` while it waits or its turn is unfinished."""
    item = inbox.get_item(t, inbox_id)
    if item.outcome is None:
        return None
    turn = inbox.find_turn_of_item(t, inbox_id)
    if turn is not None and turn.state is not TurnState.DONE:
        return None
    text, notices, cut = ("", (), False) if turn is None else _told(t, turn)
    return InputCompleted(
        inbox_id=inbox_id,
        conversation=item.conversation_id,
        session=conversations.get_conversation(t, item.conversation_id).head,
        outcome=item.outcome,
        turn=turn,
        text=text,
        note=item.note,
        notices=notices,
        cut=cut,
    )


def _told(t: Tx, turn: Turn) -> tuple[str, tuple[str, ...], bool]:
    """What the person is told at the end of a turn, what beside it, and whether that is cut."""
    found = entries.read_turn_end(t, turn)
    events = tuple(entry.text for entry in found if entry.kind is EntryKind.EVENT)
    if turn.outcome is not TurnOutcome.ANSWERED:
        # The last one tells the outcome itself.
        return turn.error or "", events[:-1], False
    message = next((entry for entry in found if entry.kind is EntryKind.MESSAGE), None)
    if message is not None and message.role is Role.ASSISTANT and message.text.strip():
        return message.text, events, messages.is_truncated(message.message)
    if found and found[-1].kind is EntryKind.EVENT:
        return events[-1], events[:-1], False
    return "", events, False
