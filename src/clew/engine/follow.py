"""Following: what happens in a conversation, as a stream of events."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
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
from clew.engine.hub import Changed
from clew.store.transactions import entries, standing, stops

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from clew.core.entry import Entry
    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId
    from clew.core.standing import ConversationState
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
) -> AsyncGenerator[ConversationEvent]:
    """
    Every entry above ``after`` in order, without gap or repeat, and what happens live in between.

    Never ends by itself. Pieces of a response (``Delta``) come only from turns of this process;
    those that came before are told at once, after the entries. Any later entry confirms them. Who
    needs none (not ``live``) makes no model stream. With ``with_standing`` it is told what the
    conversation is doing, too: once what was stored before is told, and whenever that changes.

    :raises NotFound: with ``with_standing``, once there is no such conversation any more
    """
    with hub.follow(conversation, live=live) as follower:
        log = _Log(store, conversation, after=after, with_standing=with_standing)
        async for stored in log.history():
            yield stored
        # In one moment: the snapshot has the pieces that came meanwhile.
        waiting, snapshot = follower.take(), hub.snapshot(conversation)
        waiting = [event for event in waiting if not isinstance(event, (Delta, Retracted))]
        for happened in [*waiting, *([] if snapshot is None else [snapshot])]:
            async for event in log.in_order(happened):
                yield event
        while True:
            async for event in log.news(follower):
                yield event
            async for event in log.in_order(await follower.get()):
                yield event


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    """What the store held in one moment, beyond what was told."""

    entries: list[Entry]
    #: There are more entries: what follows was not looked at.
    more: bool
    #: The turns that have ended since.
    closed: list[Turn]
    standing: ConversationState | None


class _Log:
    """What of a conversation was told already, and what is told next."""

    def __init__(
        self, store: Store, conversation: ConversationId, *, after: int, with_standing: bool
    ) -> None:
        self._store, self._conversation, self._with_standing = store, conversation, with_standing
        #: The newest entry that was told, and the newest of them that belongs to a turn.
        self._last, self._last_of_turn = after, 0
        #: The newest turn whose end was told, or came before all that is told.
        self._closed: Turn | None = None
        self._standing: ConversationState | None = None
        #: Pieces were told that no entry has confirmed and nothing has taken back.
        self._pieces = False
        #: The store may hold what no event tells of.
        self._behind = True

    async def history(self) -> AsyncIterator[ConversationEvent]:
        """The entries that are stored already."""
        self._closed = await self._store.read(stops.find_last_done_turn, self._conversation)
        more = True
        while more:
            look = await self._look()
            for entry in look.entries:
                for told in self._tell(entry):
                    yield told
            more = look.more

    async def news(self, follower: Follower) -> AsyncIterator[ConversationEvent]:
        """
        What is stored and no event has told.

        What this process did is told as it happened: while any of that waits, or comes during the
        look, nothing is. Only pieces may be overtaken; they are left out then.
        """
        while self._behind and not follower.has_stored:
            look = await self._look()
            if follower.has_stored:
                return
            self._behind = look.more
            for told in self._seen(look):
                yield told

    async def in_order(
        self, event: ConversationEvent | Changed
    ) -> AsyncIterator[ConversationEvent]:
        """What is told for an event: stored things from the log, which has them in order."""
        match event:
            case Changed():
                self._behind = True
                return
            case EntryAppended(entry=entry):
                stored = self._up_to(entry)
            case TurnFinished(turn=turn):
                stored = self._closing(turn)
            case _:
                if not self._overtaken(event):
                    self._pieces = isinstance(event, (Delta, Snapshot)) or (
                        self._pieces and not isinstance(event, Retracted)
                    )
                    self._behind |= self._with_standing and isinstance(event, TurnStarted)
                    yield event
                return
        self._behind |= self._with_standing
        async for told in stored:
            yield told

    def _overtaken(self, event: ConversationEvent) -> bool:
        """Whether an event is of what was told whole already."""
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

    async def _look(self) -> _Look:
        return await self._store.read(
            _look,
            self._conversation,
            after=self._last,
            closed=0 if self._closed is None else self._closed.first_seq,
            with_standing=self._with_standing,
        )

    def _seen(self, look: _Look) -> Iterator[ConversationEvent]:
        entries = deque(look.entries)
        for turn in look.closed:
            while entries and _until_end(entries[0], turn):
                yield from self._tell(entries.popleft())
            yield self._close(turn)
        for entry in entries:
            yield from self._tell(entry)
        if look.standing is not None and look.standing != self._standing:
            self._standing = look.standing
            yield ConversationStateChanged(standing=look.standing)

    async def _up_to(self, wanted: Entry) -> AsyncIterator[ConversationEvent]:
        if wanted.seq > self._last + 1:
            async for entry in _entries(self._store, self._conversation, self._last):
                if entry.seq >= wanted.seq:
                    break
                for told in self._tell(entry):
                    yield told
        if wanted.seq > self._last:
            for told in self._tell(wanted):
                yield told

    async def _closing(self, turn: Turn) -> AsyncIterator[ConversationEvent]:
        if self._has_closed(turn):
            return
        async for entry in _entries(self._store, self._conversation, self._last):
            if not _until_end(entry, turn):
                break
            for told in self._tell(entry):
                yield told
        yield self._close(turn)

    def _close(self, turn: Turn) -> TurnFinished:
        self._closed = turn
        return TurnFinished(turn=turn)

    def _tell(self, entry: Entry) -> Iterator[ConversationEvent]:
        self._last = entry.seq
        if entry.turn_id is not None:
            self._last_of_turn = entry.seq
            if self._pieces and entry.kind is EntryKind.ATTEMPT:
                # This entry has overtaken the event that takes the pieces back.
                yield Retracted(
                    conversation=self._conversation,
                    turn=entry.turn_id,
                    after=entry.seq,
                    reason=entry.text,
                )
        self._pieces = False
        yield EntryAppended(entry=entry)


def _until_end(entry: Entry, turn: Turn) -> bool:
    """Whether an entry comes before the end of a turn."""
    return entry.seq <= turn.first_seq or entry.turn_id == turn.id


def _look(
    t: Tx, conversation: ConversationId, *, after: int, closed: int, with_standing: bool
) -> _Look:
    found = entries.read_entries_after(t, conversation, after=after, limit=_SLICE)
    more = len(found) == _SLICE
    return _Look(
        entries=found,
        more=more,
        closed=[] if more else stops.list_done_turns(t, conversation, after=closed),
        standing=standing.get_conversation_state(t, conversation)
        if with_standing and not more
        else None,
    )


async def _entries(store: Store, conversation: ConversationId, after: int) -> AsyncIterator[Entry]:
    while True:
        found = await store.read(
            entries.read_entries_after, conversation, after=after, limit=_SLICE
        )
        for entry in found:
            yield entry
        if len(found) < _SLICE:
            return
        after = found[-1].seq
