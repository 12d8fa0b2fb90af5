"""The events of a conversation as a stream."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from clew.core.entry import EntryKind
from clew.core.events import (
    ConversationStateChanged,
    Delta,
    EntryAppended,
    Retracted,
    Snapshot,
    TurnFinished,
    TurnStarted,
)
from clew.engine.event_bus import StoreChanged
from clew.record import Record
from clew.store.transactions import conversation_state, entries, turn_queries

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from clew.core.conversation_state import ConversationState
    from clew.core.entry import Entry
    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId
    from clew.core.turn import Turn
    from clew.engine.event_bus import EventBus, Subscriber
    from clew.store.contract import Store, Tx

_PAGE_SIZE = 200


async def stream_events(
    store: Store,
    hub: EventBus,
    conversation: ConversationId,
    *,
    after: int,
    live: bool = True,
    with_standing: bool = False,
) -> AsyncGenerator[ConversationEvent]:
    """
    Yield every entry above ``after`` in order, without gap or repeat, and live events.

    Never ends by itself. Pieces of a response (``Delta``) come only from turns of this
    process; earlier ones come first, right after the stored entries. Any later entry
    confirms them. A caller that needs none (not ``live``) causes no model stream. With
    ``with_standing`` the state of the conversation is included: once after the stored
    entries, and whenever it changes.

    :raises NotFound: with ``with_standing``, once the conversation no longer exists
    """
    with hub.subscribe(conversation, live=live) as follower:
        log = _EventOrderer(store, conversation, after=after, with_standing=with_standing)
        async for stored in log.read_history():
            yield stored
        # Without an await in between: the snapshot has the pieces that came meanwhile.
        waiting, snapshot = follower.drain_events(), hub.get_snapshot(conversation)
        waiting = [event for event in waiting if not isinstance(event, (Delta, Retracted))]
        for happened in [*waiting, *([] if snapshot is None else [snapshot])]:
            async for event in log.order_event(happened):
                yield event
        while True:
            async for event in log.read_unannounced(follower):
                yield event
            async for event in log.order_event(await follower.get()):
                yield event


class _StoreSnapshot(Record):
    """The store's state at one moment, beyond the events already sent."""

    entries: list[Entry]
    #: There are more entries: the fields below were not read.
    more: bool
    #: The turns that have ended since.
    closed: list[Turn]
    state: ConversationState | None


class _EventOrderer:
    """The progress of one stream: the events already sent, and those to send next."""

    def __init__(
        self, store: Store, conversation: ConversationId, *, after: int, with_standing: bool
    ) -> None:
        self._store, self._conversation, self._with_state = store, conversation, with_standing
        #: The newest entry that was sent, and the newest of them that belongs to a turn.
        self._last, self._last_of_turn = after, 0
        #: The newest turn whose end was sent, or came before the stream began.
        self._closed: Turn | None = None
        self._state: ConversationState | None = None
        #: Pieces were sent that no entry has confirmed and no event has retracted.
        self._pieces = False
        #: The store may hold entries that no event announced.
        self._behind = True

    async def read_history(self) -> AsyncIterator[ConversationEvent]:
        """Yield the entries that are stored already."""
        self._closed = await self._store.read(turn_queries.find_last_done_turn, self._conversation)
        more = True
        while more:
            look = await self._read_store()
            for entry in look.entries:
                for told in self._emit_entry(entry):
                    yield told
            more = look.more

    async def read_unannounced(self, follower: Subscriber) -> AsyncIterator[ConversationEvent]:
        """
        Yield stored changes that no event announced.

        Changes by this process are sent in the order of its events: while any of those
        waits, or arrives during the read, nothing is yielded. Only pieces may be overtaken;
        they are dropped then.
        """
        while self._behind and not follower.has_stored_events:
            look = await self._read_store()
            if follower.has_stored_events:
                return
            self._behind = look.more
            for told in self._emit_changes(look):
                yield told

    async def order_event(
        self, event: ConversationEvent | StoreChanged
    ) -> AsyncIterator[ConversationEvent]:
        """Yield the events for one event; stored ones come from the log, which orders them."""
        match event:
            case StoreChanged():
                self._behind = True
                return
            case EntryAppended(entry=entry):
                stored = self._emit_up_to(entry)
            case TurnFinished(turn=turn):
                stored = self._emit_closing(turn)
            case _:
                if not self._is_overtaken(event):
                    self._pieces = isinstance(event, (Delta, Snapshot)) or (
                        self._pieces and not isinstance(event, Retracted)
                    )
                    self._behind |= self._with_state and isinstance(event, TurnStarted)
                    yield event
                return
        self._behind |= self._with_state
        async for told in stored:
            yield told

    def _is_overtaken(self, event: ConversationEvent) -> bool:
        """Return whether the event is about a response that was already sent complete."""
        match event:
            case Delta() | Snapshot() | Retracted():
                closed = None if self._closed is None else self._closed.id
                return event.after < self._last_of_turn or event.turn == closed
            case TurnStarted(turn=turn):
                return self._has_closed(turn)
            case _:
                return False

    def _has_closed(self, turn: Turn) -> bool:
        return self._closed is not None and turn.first_seq <= self._closed.first_seq

    async def _read_store(self) -> _StoreSnapshot:
        return await self._store.read(
            _read_snapshot,
            self._conversation,
            after=self._last,
            closed=0 if self._closed is None else self._closed.first_seq,
            with_standing=self._with_state,
        )

    def _emit_changes(self, look: _StoreSnapshot) -> Iterator[ConversationEvent]:
        entries = deque(look.entries)
        for turn in look.closed:
            while entries and _precedes_end(entries[0], turn):
                yield from self._emit_entry(entries.popleft())
            yield self._mark_closed(turn)
        for entry in entries:
            yield from self._emit_entry(entry)
        if look.state is not None and look.state != self._state:
            self._state = look.state
            yield ConversationStateChanged(standing=look.state)

    async def _emit_up_to(self, wanted: Entry) -> AsyncIterator[ConversationEvent]:
        if wanted.seq > self._last + 1:
            async for entry in _iter_entries(self._store, self._conversation, self._last):
                if entry.seq >= wanted.seq:
                    break
                for told in self._emit_entry(entry):
                    yield told
        if wanted.seq > self._last:
            for told in self._emit_entry(wanted):
                yield told

    async def _emit_closing(self, turn: Turn) -> AsyncIterator[ConversationEvent]:
        if self._has_closed(turn):
            return
        async for entry in _iter_entries(self._store, self._conversation, self._last):
            if not _precedes_end(entry, turn):
                break
            for told in self._emit_entry(entry):
                yield told
        yield self._mark_closed(turn)

    def _mark_closed(self, turn: Turn) -> TurnFinished:
        self._closed = turn
        return TurnFinished(turn=turn)

    def _emit_entry(self, entry: Entry) -> Iterator[ConversationEvent]:
        self._last = entry.seq
        if entry.turn_id is not None:
            self._last_of_turn = entry.seq
            if self._pieces and entry.kind is EntryKind.ATTEMPT:
                # This entry has overtaken the event that retracts the pieces.
                yield Retracted(
                    conversation=self._conversation,
                    turn=entry.turn_id,
                    after=entry.seq,
                    reason=entry.text,
                )
        self._pieces = False
        yield EntryAppended(entry=entry)


def _precedes_end(entry: Entry, turn: Turn) -> bool:
    """Return whether an entry comes before the end of a turn."""
    return entry.seq <= turn.first_seq or entry.turn_id == turn.id


def _read_snapshot(
    t: Tx, conversation: ConversationId, *, after: int, closed: int, with_standing: bool
) -> _StoreSnapshot:
    found = entries.read_entries_after(t, conversation, after=after, limit=_PAGE_SIZE)
    more = len(found) == _PAGE_SIZE
    return _StoreSnapshot(
        entries=found,
        more=more,
        closed=[] if more else turn_queries.list_done_turns(t, conversation, after=closed),
        state=conversation_state.get_conversation_state(t, conversation)
        if with_standing and not more
        else None,
    )


async def _iter_entries(
    store: Store, conversation: ConversationId, after: int
) -> AsyncIterator[Entry]:
    while True:
        found = await store.read(
            entries.read_entries_after, conversation, after=after, limit=_PAGE_SIZE
        )
        for entry in found:
            yield entry
        if len(found) < _PAGE_SIZE:
            return
        after = found[-1].seq
