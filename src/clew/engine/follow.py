"""Following: what happens in a conversation, or to one input, as a stream of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent import messages
from clew.core.entry import EntryKind, Role
from clew.core.events import (
    Delta,
    EntryAppended,
    InputEnded,
    Retracted,
    Snapshot,
    StandingChanged,
    ToolCalled,
    TurnBegun,
    TurnClosed,
)
from clew.core.turn import Outcome, TurnState
from clew.engine.hub import Changed
from clew.engine.lasting import PATIENCE, patiently
from clew.store.transactions import conversations, entries, inbox, standing, stops

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from clew.core.entry import Entry
    from clew.core.events import Event
    from clew.core.ids import ConversationId, InboxId, TurnId
    from clew.core.standing import Standing
    from clew.core.turn import Turn
    from clew.engine.hub import Follower, Hub
    from clew.store.contract import Store, Tx

_SLICE = 200


async def follow(
    store: Store,
    hub: Hub,
    conversation: ConversationId,
    *,
    after: int,
    live: bool = True,
    with_standing: bool = False,
) -> AsyncGenerator[Event]:
    """
    Every entry above ``after`` in order, without gap or repeat, and what happens live in between.

    Never ends by itself. Pieces of a response (``Delta``) come only from turns of this process;
    those that came before are told at once, after the entries. Any later entry confirms them. Who
    needs none (not ``live``) makes no model stream. With ``with_standing`` it is told what the
    conversation is doing, too: once what was stored before is told, and whenever that changes.

    :raises NotFound: with ``with_standing``, once there is no such conversation any more
    """
    look = _Look(store, conversation) if with_standing else None
    with hub.follow(conversation, live=live) as follower:
        log = _Log(store, conversation, after, await _last_closed(store, conversation))
        behind = True
        while behind:
            async for stored in log.news():
                yield stored
            # Pieces that came meanwhile are in the snapshot.
            behind = follower.skip()
        if snapshot := hub.snapshot(conversation):
            log.pieces = True
            yield snapshot
        if look is not None and (changed := await look.changed()):
            yield changed
        while True:
            happened = await follower.get()
            async for event in log.in_order(happened):
                yield event
            piece = isinstance(happened, (Delta, ToolCalled, Retracted))
            if look is not None and not piece and (changed := await look.changed()):
                yield changed


class _Look:
    """What was told last of where a conversation stands."""

    def __init__(self, store: Store, conversation: ConversationId) -> None:
        self._store, self._conversation = store, conversation
        self._told: Standing | None = None

    async def changed(self) -> StandingChanged | None:
        found = await self._store.read(standing.standing, self._conversation)
        if found == self._told:
            return None
        self._told = found
        return StandingChanged(standing=found)


class _Log:
    """What of a conversation's log was told already."""

    def __init__(
        self, store: Store, conversation: ConversationId, last: int, closed: Turn | None
    ) -> None:
        self._store, self._conversation = store, conversation
        self._last, self._closed = last, closed
        # The newest entry that was read before its event came: pieces that are still to come of
        # its turn may be older than it.
        self._ahead: Entry | None = None
        #: Pieces were told that no entry has confirmed and nothing has taken back.
        self.pieces = False

    async def in_order(self, event: Event | Changed) -> AsyncIterator[Event]:
        """What is told for an event: stored things from the log, which has them in order."""
        match event:
            case Changed():
                stored = self.news()
            case EntryAppended(entry=entry):
                stored = self._up_to(entry)
            case TurnClosed(turn=turn):
                stored = self._closing(turn)
            case _:
                if not self._overtaken(event):
                    self.pieces = isinstance(event, Delta) or (
                        self.pieces and not isinstance(event, Retracted)
                    )
                    yield event
                return
        async for told in stored:
            yield told

    def _overtaken(self, event: Event) -> bool:
        """Whether a piece belongs to what was told whole already."""
        if isinstance(event, TurnBegun):
            self._ahead = None
        if not isinstance(event, (Delta, Retracted)):
            return False
        ahead = None if self._ahead is None else self._ahead.turn_id
        closed = None if self._closed is None else self._closed.id
        return event.turn in (ahead, closed)

    async def news(self) -> AsyncIterator[Event]:
        """Whatever is stored and was not told yet; it may overtake what happens live."""
        # Looked at first: the entries of a turn that is closed now are all there to be read.
        closed = await _last_closed(self._store, self._conversation)
        if closed is not None and closed != self._closed:
            async for told in self._closing(closed):
                yield told
        async for entry in self._entries():
            self._ahead = entry
            for told in self._tell(entry):
                yield told

    async def _up_to(self, wanted: Entry) -> AsyncIterator[Event]:
        if self._ahead is not None and wanted.seq >= self._ahead.seq:
            self._ahead = None
        if wanted.seq > self._last + 1:
            async for entry in self._entries():
                if entry.seq >= wanted.seq:
                    break
                for told in self._tell(entry):
                    yield told
        if wanted.seq > self._last:
            for told in self._tell(wanted):
                yield told

    async def _closing(self, turn: Turn) -> AsyncIterator[Event]:
        if self._ahead is not None and self._ahead.turn_id == turn.id:
            self._ahead = None
        if turn == self._closed:
            return
        async for entry in self._entries():
            if entry.seq > turn.first_seq and entry.turn_id != turn.id:
                break
            for told in self._tell(entry):
                yield told
        self._closed = turn
        yield TurnClosed(turn=turn)

    async def _entries(self) -> AsyncIterator[Entry]:
        async for entry in _entries(self._store, self._conversation, self._last):
            yield entry

    def _tell(self, entry: Entry) -> Iterator[Event]:
        self._last = entry.seq
        if self.pieces and entry.kind is EntryKind.ATTEMPT and entry.turn_id is not None:
            # This entry has overtaken the event that takes the pieces back.
            yield Retracted(conversation=self._conversation, turn=entry.turn_id, reason=entry.text)
        self.pieces = False
        yield EntryAppended(entry=entry)


async def _last_closed(store: Store, conversation: ConversationId) -> Turn | None:
    return await store.read(stops.last_done_turn, conversation)


async def _entries(store: Store, conversation: ConversationId, after: int) -> AsyncIterator[Entry]:
    while True:
        found = await store.read(entries.entries_after, conversation, after=after, limit=_SLICE)
        for entry in found:
            yield entry
        if len(found) < _SLICE:
            return
        after = found[-1].seq


async def follow_input(
    store: Store,
    hub: Hub,
    conversation: ConversationId,
    inbox_id: InboxId,
    *,
    live: bool = True,
) -> AsyncGenerator[Event | InputEnded]:
    """
    What happens to one input: the live events of the turn that answers it, and last its end.

    Who comes late is told the text so far first. Wherever the turn runs, and however often it is
    resumed, the end comes once. Who waits only for that (not ``live``) makes no model stream.

    :raises StoreUnavailable: when the store was away for ``PATIENCE`` seconds
    """
    with hub.follow(conversation, live=live) as follower:
        if snapshot := hub.snapshot(conversation):
            follower.put(snapshot)
        turn: TurnId | None = None
        while True:
            if ended := await patiently(lambda: store.read(input_end, inbox_id), longest=PATIENCE):
                yield ended
                return
            if turn is None:
                turn = await patiently(lambda: _turn_of(store, inbox_id), longest=PATIENCE)
            async for event in _until_changed(follower, turn):
                yield event


async def _until_changed(follower: Follower, turn: TurnId | None) -> AsyncIterator[Event]:
    """The turn's live events, until something may have changed in the store."""
    while True:
        event = await follower.get()
        if isinstance(event, (Changed, TurnClosed)):
            return
        if isinstance(event, TurnBegun) and turn is None:
            return
        if _turn(event) == turn:
            yield event


def _turn(event: Event) -> TurnId | None:
    match event:
        case Delta(turn=turn) | Snapshot(turn=turn) | Retracted(turn=turn) | ToolCalled(turn=turn):
            return turn
        case TurnBegun(turn=turn) | TurnClosed(turn=turn):
            return turn.id
        case EntryAppended(entry=entry):
            return entry.turn_id
        case StandingChanged():
            return None


async def _turn_of(store: Store, inbox_id: InboxId) -> TurnId | None:
    turn = await store.read(inbox.turn_of, inbox_id)
    return None if turn is None else turn.id


def input_end(t: Tx, inbox_id: InboxId) -> InputEnded | None:
    """What became of an input; ``None`` while it waits or its turn is unfinished."""
    item = inbox.get_item(t, inbox_id)
    if item.outcome is None:
        return None
    turn = inbox.turn_of(t, inbox_id)
    if turn is not None and turn.state is not TurnState.DONE:
        return None
    text, notices, cut = ("", (), False) if turn is None else _told(t, turn)
    return InputEnded(
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
    found = entries.end_of_turn(t, turn)
    events = tuple(entry.text for entry in found if entry.kind is EntryKind.EVENT)
    if turn.outcome is not Outcome.ANSWERED:
        # The last one tells the outcome itself.
        return turn.error or "", events[:-1], False
    message = next((entry for entry in found if entry.kind is EntryKind.MESSAGE), None)
    if message is not None and message.role is Role.ASSISTANT and message.text.strip():
        return message.text, events, messages.is_cut(message.message)
    if found and found[-1].kind is EntryKind.EVENT:
        return events[-1], events[:-1], False
    return "", events, False
