"""Run as a stream of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api import outcome_mapping, sse
from clew.api.ag_ui.event_encoder import RunEventEncoder
from clew.api.ag_ui.input_reader import InputReader
from clew.api.ag_ui.interrupts import build_interrupt
from clew.api.pending_completion import problem_after_storing
from clew.api.problems import Problem
from clew.api.sse import InterruptibleReader, Interruption
from clew.core.events import InputCompleted
from clew.core.inbox import InboxOutcome
from clew.core.turn import TurnOutcome
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from clew.api.ag_ui.event_encoder import Event
    from clew.api.ag_ui.interrupts import FollowedInput
    from clew.api.ag_ui.request import RunInput
    from clew.api.http_call import HttpCall
    from clew.core.ids import ConversationId
    from clew.engine.request_service import TokenUsage
    from clew.engine.run_service import RunRecord

_SUCCESS = {"type": "success"}
_CANCELLED = {"type": "cancelled"}


class RunStream:
    """
    The stream of one run: the turns of its inputs, one after the other.

    A client that leaves stops nothing: the same run asked for again shows what it has missed.
    """

    def __init__(
        self,
        call: HttpCall,
        order: RunInput,
        followed: Sequence[FollowedInput],
        *,
        conversation: ConversationId | None,
        is_new: bool,
    ) -> None:
        self._call, self._order, self._followed = call, order, followed
        self._conversation, self._is_new = conversation, is_new
        self._encoder = RunEventEncoder(thread=order.thread, run=order.run)
        #: The run has ended, or nobody reads it any more.
        self._is_over = False

    async def iter_frames(self) -> AsyncGenerator[bytes]:
        """Yield the events as bytes."""
        yield sse.encode_data(self._encoder.start())
        try:
            async for frame in self._iter_inputs():
                yield frame
        except ClewError as error:
            problem = problem_after_storing(error, again=True).problem
            for event in self._fail(problem):
                yield sse.encode_data(event)

    async def _iter_inputs(self) -> AsyncGenerator[bytes]:
        if not self._followed:
            for event in await self._show_history():
                yield sse.encode_data(event)
        held, shown = self._order.held, None
        if len(self._followed) > 1:
            # The new message comes after what goes on with the answers.
            sent = {one.id for one in self._order.sent}
            held = tuple(one for one in held if one.id not in sent)
        for place, followed in enumerate(self._followed):
            reader = InputReader(
                self._call.engine.runs,
                self._encoder,
                followed,
                held=held,
                shown=shown,
                is_new=self._is_new,
            )
            async for frame in self._iter_input(reader, followed, is_last=self._is_last(place)):
                yield frame
            if self._is_over:
                return
            held, shown = (), None if reader.has_replaced else reader.known

    def _is_last(self, place: int) -> bool:
        return place == len(self._followed) - 1

    async def _show_history(self) -> list[Event]:
        """Return the events of a run that has nothing to follow."""
        history = (
            ()
            if self._conversation is None
            else await self._call.engine.runs.read_history(self._conversation)
        )
        return [*self._encoder.replace_all(history), *self._encoder.finish(_SUCCESS, None)]

    async def _iter_input(
        self, reader: InputReader, followed: FollowedInput, *, is_last: bool
    ) -> AsyncGenerator[bytes]:
        record = await self._call.engine.runs.read(followed.inbox_id)
        events = self._call.engine.stream_input(record.item.as_accepted(), with_standing=True)
        ear = InterruptibleReader(
            events, self._call.request.receive, self._call.server.leaving.stop
        )
        async with ear:
            while not (reader.ending or self._is_over):
                heard = await ear.next_event(self._call.server.timeouts.keep_alive)
                if heard is Interruption.TIMEOUT:
                    yield sse.KEEP_ALIVE_COMMENT
                    continue
                found = (
                    self._leave(heard)
                    if isinstance(heard, Interruption)
                    else await reader.read(heard)
                )
                if isinstance(heard, InputCompleted):
                    found = [*found, *self._end(reader, heard, followed, is_last=is_last)]
                elif reader.is_interrupted:
                    found = [*found, *self._interrupt(reader, followed)]
                for event in found:
                    yield sse.encode_data(event)

    def _leave(self, why: Interruption) -> list[Event]:
        self._is_over = True
        return [] if why is Interruption.DISCONNECTED else self._fail(outcome_mapping.STOPPING)

    def _interrupt(self, reader: InputReader, followed: FollowedInput) -> list[Event]:
        """Return the end of a run whose turn waits for answers."""
        self._is_over = True
        assert reader.record is not None
        asked = [build_interrupt(one) for one in reader.record.approvals]
        usage = _build_usage(reader.record, followed)
        return self._encoder.finish({"type": "interrupt", "interrupts": asked}, usage)

    def _end(
        self, reader: InputReader, end: InputCompleted, followed: FollowedInput, *, is_last: bool
    ) -> list[Event]:
        """Return the events after the last message of an input."""
        record, told = reader.record, outcome_mapping.text_or_problem(end)
        assert record is not None
        usage = _build_usage(record, followed)
        if _was_stopped(end):
            self._is_over = True
            return self._encoder.finish(_CANCELLED, usage)
        if isinstance(told, Problem):
            return self._fail(told)
        extra: list[Event] = []
        if told.strip() and told != reader.last_text:
            extra = self._encoder.add_answer(f"msg_{record.item.id.removeprefix('inb_')}_end", told)
        return [*extra, *(self._encoder.finish(_SUCCESS, usage) if is_last else ())]

    def _fail(self, problem: Problem) -> list[Event]:
        self._is_over = True
        return self._encoder.fail(code=problem.code, message=problem.message)


def _was_stopped(end: InputCompleted) -> bool:
    turn = end.turn
    return end.outcome is InboxOutcome.CANCELLED or (
        turn is not None and turn.outcome is TurnOutcome.CANCELLED
    )


def _build_usage(record: RunRecord, followed: FollowedInput) -> Event | None:
    """Return the tokens of a turn; what a run that goes on with it has used is not known."""
    used: TokenUsage | None = record.usage
    if used is None or followed.after is not None or not used.input_tokens:
        return None
    return {
        "inputTokens": used.input_tokens,
        "cachedInputTokens": used.cached_tokens,
        "outputTokens": used.output_tokens,
        "totalTokens": used.input_tokens + used.output_tokens,
    }
