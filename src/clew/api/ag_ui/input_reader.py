"""Events of a run for one of its inputs, from what is stored of its turn and live pieces."""

from __future__ import annotations

import enum
from itertools import takewhile
from typing import TYPE_CHECKING

from clew.api.ag_ui.snapshots import is_current
from clew.core.client_message import make_response_id
from clew.core.entry import Role
from clew.core.events import (
    ConversationStateChanged,
    Delta,
    DeltaKind,
    EntryAppended,
    InputCompleted,
    Retracted,
    Snapshot,
)
from clew.core.turn import TurnState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.ag_ui.event_encoder import Event, RunEventEncoder
    from clew.api.ag_ui.interrupts import FollowedInput
    from clew.api.ag_ui.request import HeldMessage
    from clew.core.client_message import ClientMessage
    from clew.core.events import ConversationEvent
    from clew.engine.run_service import RunRecord, RunService


class Ending(enum.Enum):
    DONE = "done"  #: the input has its result
    INTERRUPTED = "interrupted"  #: its turn, or the one before, waits for answers


class InputReader:
    """
    The messages of one input's turn on their way to a client.

    What is stored is read from the store; live pieces come in between, and any that the
    store has overtaken are dropped. Where the client holds other messages than those that
    are stored, it gets the stored ones.
    """

    def __init__(
        self,
        runs: RunService,
        encoder: RunEventEncoder,
        followed: FollowedInput,
        *,
        held: Sequence[HeldMessage],
        shown: int | None,
        is_new: bool,
    ) -> None:
        """``held`` is what the client holds, and ``shown`` the seq that this run has reached."""
        self._runs, self._encoder, self._followed, self._held = runs, encoder, followed, held
        self._held_ids, self._shown = {one.id for one in held}, shown
        self.record: RunRecord | None = None
        self.ending: Ending | None = None
        #: The client was given the stored messages in place of its own.
        self.has_replaced = False
        #: The turn has begun, and the client has the messages before it.
        self._is_begun = False
        #: The seq up to which the messages are sent, and that of the last which is no user's.
        self._known, self._last_answer = followed.after or 0, 0
        #: Thinking is shown only of responses that are seen from their start.
        self._shows_thinking = is_new
        #: The newest text of the assistant that is stored.
        self.last_text = ""

    @property
    def is_interrupted(self) -> bool:
        """Return whether the turn, or the one before, waits for answers."""
        return self.ending is Ending.INTERRUPTED

    @property
    def known(self) -> int:
        """Return the seq up to which the client has the messages."""
        return self._known

    async def read(self, heard: ConversationEvent | InputCompleted) -> list[Event]:
        """Return the events for what was heard."""
        match heard:
            case InputCompleted():
                self.ending = Ending.DONE
                return await self._sync()
            case ConversationStateChanged(standing=state):
                found = await self._sync()
                if state.turn is not None and state.turn.state is TurnState.WAITING:
                    self._look_for_questions()
                return found
            case EntryAppended(entry=entry):
                return await self._sync(entry.seq)
            case Retracted(after=after):
                return [] if after < self._last_answer else await self._take_back()
            case Delta() | Snapshot():
                return await self._add_piece(heard)
            case _:
                return []

    def _look_for_questions(self) -> None:
        # The turn may have been answered meanwhile, or another may be asked about.
        if self.record is not None and self.record.end is None and self.record.approvals:
            self.ending = Ending.INTERRUPTED

    async def _add_piece(self, heard: Delta | Snapshot) -> list[Event]:
        stored = await self._sync(heard.after)
        if heard.after < self._last_answer or not self._is_begun or self.record is None:
            return stored
        id, step = make_response_id(heard.turn, self.record.responses), self._step
        match heard:
            case Snapshot(text=text):
                return [*stored, *self._encoder.add_partial_text(id, step, text)]
            case Delta(kind=DeltaKind.TEXT, text=text):
                return [*stored, *self._encoder.add_text(id, step, text)]
            case Delta(text=text) if self._shows_thinking:
                return [*stored, *self._encoder.add_thinking(id, step, text)]
            case _:
                return stored

    @property
    def _step(self) -> str:
        """Return the name of the step that the next response begins."""
        return f"step {1 if self.record is None else self.record.responses + 1}"

    async def _take_back(self) -> list[Event]:
        """Return the events that void what was sent of the response in progress."""
        if self._encoder.has_partial_response:
            return await self._replace_all()
        return self._encoder.end_thinking()

    async def _replace_all(self) -> list[Event]:
        assert self.record is not None
        self._held_ids.clear()
        self.has_replaced = True
        history = await self._read_history(self.record)
        return self._encoder.replace_all(history)

    async def _read_history(self, record: RunRecord) -> Sequence[ClientMessage]:
        conversation = record.item.conversation_id
        return await self._runs.read_history(conversation, before=self._known + 1)

    async def _sync(self, seq: int | None = None) -> list[Event]:
        """Return the events of the messages that are stored, if there may be some up to ``seq``."""
        if seq is not None and seq <= self._known:
            return []
        record = await self._runs.read(self._followed.inbox_id, after=self._known)
        self.record = record
        if record.turn is None:
            return []
        found = [] if self._is_begun else await self._begin(record)
        for message in record.messages:
            if message.seq > self._known:
                found += await self._add_message(message)
        self._known = max(self._known, seq or 0)
        return found

    async def _begin(self, record: RunRecord) -> list[Event]:
        """Return the events that give the client the messages before those of the run."""
        self._is_begun = True
        if self._followed.after is None:
            assert record.turn is not None
            self._known = record.turn.first_seq - 1
            for message in takewhile(lambda one: one.role is Role.USER, record.messages):
                self._known = message.seq
        return [] if await self._is_current(record) else await self._replace_all()

    async def _is_current(self, record: RunRecord) -> bool:
        history = await self._read_history(record)
        if self._shown is None or record.turn is None:
            return is_current(self._held, history)
        between = range(self._shown + 1, record.turn.first_seq)
        return not any(one.seq in between for one in history)

    async def _add_message(self, message: ClientMessage) -> list[Event]:
        if message.role is not Role.USER:
            self._last_answer, self._shows_thinking = message.seq, True
            self.last_text = message.text or self.last_text
        elif message.id in self._held_ids:
            self._known = message.seq
            return []
        step = f"step {message.number + 1}"
        events = self._encoder.add_message(message, step)
        replaced: list[Event] = []
        if events is None:
            replaced = await self._replace_all()
            events = self._encoder.add_message(message, step) or []
        self._known = message.seq
        return [*replaced, *events]
