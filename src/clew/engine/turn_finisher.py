"""The end of a turn: its last entries, its outcome and the answer, stored in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent import messages, tool_results
from clew.agent.provider_errors import FailureKind
from clew.core.delivery import DeliveryKind
from clew.core.entry import NOTICE_FORMAT, EntryKind, NewEntry
from clew.core.events import TurnFinished
from clew.core.journal import CallStatus
from clew.core.text import is_blank
from clew.core.turn import StopRequest, TurnOutcome
from clew.engine.final_text import TRUNCATION_NOTICE, build_final_text
from clew.engine.tool_journal import read_batch_results
from clew.errors import TurnRolledBack
from clew.store.transactions import rewinds, turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.agent.loop import FinalAnswer
    from clew.agent.messages import ModelMessage
    from clew.core.delivery import OutboundText
    from clew.core.lease import Lease
    from clew.core.turn import Turn
    from clew.engine.services import EngineServices
    from clew.engine.store_retry import RetryingStore
    from clew.engine.turn_hooks import TurnHooks
    from clew.engine.turn_log import StoreTurnLog

#: Failures by which providers reject images.
_IMAGE_REJECTIONS = frozenset({FailureKind.REFUSED.value, FailureKind.NO_MODEL.value})

_STOP_REASONS = {
    StopRequest.STOP: "stopped by the user",
    StopRequest.INTERRUPT: "interrupted by a new message",
    StopRequest.ROLLBACK: "taken back for a new message",
    StopRequest.DELETE: "the conversation was deleted",
    StopRequest.CANCEL: "the caller disconnected",
}


class TurnFinisher:
    """Writer of one turn's outcome."""

    def __init__(
        self,
        services: EngineServices,
        store: RetryingStore,
        log: StoreTurnLog,
        hooks: TurnHooks,
        *,
        lease: Lease,
        turn: Turn,
    ) -> None:
        self._services, self._store = services, store
        self._log, self._hooks = log, hooks
        self._lease, self._turn = lease, turn

    async def finish_answered(self, given: FinalAnswer) -> None:
        answer = await self._hooks.transform_answer(given)
        if answer is not given and self._log.partial_text:
            self._log.retract_deltas("a plugin changed it")
        files = await self._log.list_sent_files()
        drafts = [
            self._log.make_draft(messages.with_sent_files(message, files))
            for message in answer.unstored
        ]
        text = (
            ""
            if files and is_blank(answer.text)
            else build_final_text(
                answer.text,
                outcome=TurnOutcome.ANSWERED,
                steps=self._log.steps + 1,
                messages=self._log.message_count,
            )
        )
        if answer.is_tool_output:
            drafts.append(self._log.make_notice_draft(EntryKind.EVENT, NOTICE_FORMAT, text))
        elif answer.is_truncated:
            drafts.append(
                self._log.make_notice_draft(EntryKind.EVENT, NOTICE_FORMAT, TRUNCATION_NOTICE)
            )
            # People who read no log get the notice with the answer.
            text = f"{text}\n\n({TRUNCATION_NOTICE})"
        step = self._make_step(answer)
        said = self._log.make_outbound_text(
            DeliveryKind.ANSWER, text, markup=not is_blank(answer.text), files=files
        )
        await self._hooks.record_answer(text)
        await self._finish_turn(TurnOutcome.ANSWERED, drafts, step=step, said=said)

    def _make_step(self, answer: FinalAnswer) -> turns.StepRecord | None:
        response = next((m for m in answer.unstored if isinstance(m, messages.ModelResponse)), None)
        return None if response is None else self._log.make_step(response)

    async def finish_failed(self, error: str, code: str) -> None:
        if self._log.partial_text:
            self._log.retract_deltas(error)
        text = build_final_text(
            "",
            outcome=TurnOutcome.FAILED,
            error=error,
            code=code,
            steps=self._log.steps,
            messages=self._log.message_count,
            pictures=code in _IMAGE_REJECTIONS and await self._log.has_images(),
        )
        drafts = [
            *await self._close_context("the turn failed", begun=CallStatus.UNKNOWN),
            self._log.make_notice_draft(EntryKind.EVENT, NOTICE_FORMAT, text),
        ]
        files = await self._log.list_sent_files()
        said = self._log.make_outbound_text(DeliveryKind.ANSWER, text, markup=False, files=files)
        await self._finish_turn(TurnOutcome.FAILED, drafts, error=text, code=code, said=said)

    async def finish_stopped(self, stop: StopRequest) -> None:
        """End the turn that a person or a caller stopped; its text so far stays in the log."""
        said, why, shown = None, _STOP_REASONS[stop], self._log.partial_text
        drafts = await self._close_context(why, begun=CallStatus.CANCELLED, shown=shown)
        if (
            len(drafts) == 1
            and drafts[0].text
            and stop in (StopRequest.STOP, StopRequest.INTERRUPT)
        ):
            # People have read the text that the context contains.
            said = self._log.make_outbound_text(DeliveryKind.TEXT, shown)
        drafts.append(self._log.make_notice_draft(EntryKind.EVENT, NOTICE_FORMAT, why))
        if stop is StopRequest.ROLLBACK:
            await self._roll_back(drafts)
        else:
            await self._finish_turn(TurnOutcome.CANCELLED, drafts, said=said)

    async def _roll_back(
        self, drafts: Sequence[NewEntry], step: turns.StepRecord | None = None
    ) -> None:
        done = await self._log.write_to_head(
            lambda session: self._store.once.write(
                rewinds.roll_back_turn,
                self._lease,
                session,
                self._turn,
                drafts=drafts,
                step=step,
                session_ids=self._services.session_ids,
                observe=self._services.observers.on_end,
            )
        )
        self._publish_outcome(done)

    async def _close_context(
        self, why: str, *, begun: CallStatus, shown: str = ""
    ) -> list[NewEntry]:
        """
        Return the entries that end the turn in the context.

        These are the results of open calls, the partial text, or a stand-in for an answer.
        A call that had begun may have had its effect: the status ``begun`` informs the
        model.
        """
        try:
            context = await self._log.read_context()
        except ValueError:
            # It cannot be read, so it cannot be sent again: every turn here will end the same way.
            return []
        last: ModelMessage | None = context.messages[-1] if context.messages else None
        stand_in = messages.message_to_draft(
            self._services.ids.new_entry_id(), messages.make_missing_response(why)
        )
        if not isinstance(last, messages.ModelResponse):
            return [
                stand_in
                if is_blank(shown)
                else self._log.make_draft(messages.make_interrupted_response(shown))
            ]
        if not messages.extract_call_ids(last):
            return []
        return [await self._close_calls(last, why, begun=begun), stand_in]

    async def _close_calls(
        self, asked: messages.ModelResponse, why: str, *, begun: CallStatus
    ) -> NewEntry:
        known, told = await read_batch_results(
            self._store,
            self._turn,
            self._log.steps,
            begun=tool_results.make_text_result(
                begun, f"{why}; it had started and may have taken effect"
            ),
        )
        otherwise = tool_results.make_text_result(CallStatus.CANCELLED, why)
        closed = tool_results.complete_batch(asked, known, otherwise=otherwise)
        self._hooks.record_closed_calls(asked, known, otherwise=otherwise, told=told)
        return messages.message_to_draft(self._services.ids.new_entry_id(), closed)

    async def _finish_turn(
        self,
        outcome: TurnOutcome,
        drafts: Sequence[NewEntry],
        *,
        error: str | None = None,
        code: str | None = None,
        step: turns.StepRecord | None = None,
        said: OutboundText | None = None,
    ) -> None:
        try:
            done = await self._log.write_to_head(
                lambda session: self._store.once.write(
                    turns.finish_turn,
                    self._lease,
                    session,
                    self._turn.id,
                    outcome,
                    drafts=drafts,
                    error=error,
                    error_code=code,
                    step=step,
                    said=said,
                    observe=self._services.observers.on_end,
                )
            )
        except TurnRolledBack:
            notice = self._log.make_notice_draft(
                EntryKind.EVENT, NOTICE_FORMAT, _STOP_REASONS[StopRequest.ROLLBACK]
            )
            await self._roll_back([*drafts, notice], step)
        else:
            self._publish_outcome(done)

    def _publish_outcome(self, done: Turn) -> None:
        self._hooks.emit_end(self._log.session, done)
        answered = done.outcome is TurnOutcome.ANSWERED
        self._services.after_turn.schedule(done.conversation_id, answered=answered)
        self._services.event_bus.publish(self._turn.conversation_id, TurnFinished(turn=done))
