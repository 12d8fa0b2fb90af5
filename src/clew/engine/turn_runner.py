"""The execution of one turn under a lease, from its stored state to its outcome."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from clew.agent import messages, tool_results, turn_context
from clew.agent.loop import AwaitingApproval, FinalAnswer, RepeatedCalls, StepLimitReached
from clew.agent.provider_errors import (
    FAILOVER_KINDS,
    MALFORMED_KINDS,
    FailureKind,
    ProviderFailure,
    classify_error,
    reclassify_text_only,
)
from clew.core.compaction import LARGE_CONTEXT
from clew.core.conversation import UNDELETE_FOR
from clew.core.delivery import DeliveryKind
from clew.core.entry import EntryKind, NewEntry
from clew.core.events import TurnFinished, TurnStarted
from clew.core.expiry_notice import read_notice
from clew.core.ids import new_session_id
from clew.core.journal import CallStatus
from clew.core.reset_policy import ResetPolicy
from clew.core.text import is_blank
from clew.core.turn import MAX_RESUMES, StopRequest, TurnOutcome
from clew.engine.final_text import TRUNCATION_NOTICE, build_final_text
from clew.engine.hook_dispatch import get_platform
from clew.engine.lease_renewal import keep_lease
from clew.engine.store_retry import RetryingStore
from clew.engine.tool_journal import StoreJournal, read_batch_results
from clew.engine.turn_concurrency import DEFAULT_LIMIT
from clew.engine.turn_hooks import TurnHooks
from clew.engine.turn_log import NOTICE_FORMAT, StoreTurnLog
from clew.errors import ClewError, LeaseExpired, LeaseLost, StoreUnavailable, TurnRolledBack
from clew.store.transactions import entries, inbox, leases, rewinds, turn_queries, turns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from clew.agent.failover import ModelChain
    from clew.agent.loop import AgentLoop, LoopResult
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.core.delivery import OutboundText
    from clew.core.ids import IdGenerator, SessionIdFactory
    from clew.core.turn import Turn
    from clew.engine.compaction import Compacted, CompactionService
    from clew.engine.context_cache import ContextCache
    from clew.engine.event_bus import EventBus
    from clew.engine.hook_dispatch import HookDispatcher
    from clew.engine.model_overrides import ModelOverrides
    from clew.engine.titles import TitleService
    from clew.engine.turn_concurrency import TurnPermit
    from clew.store.contract import Store
    from clew.store.transactions.turns import StartedWork

log = structlog.get_logger(__name__)

#: Failures by which providers reject images.
_IMAGE_REJECTIONS = frozenset({FailureKind.REFUSED.value, FailureKind.NO_MODEL.value})


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineServices:
    """The services that turns use; the same for all turns of a process."""

    store: Store
    event_bus: EventBus
    ids: IdGenerator
    loop: AgentLoop
    models: ModelChain
    compaction: CompactionService
    context_cache: ContextCache
    hooks: HookDispatcher
    titles: TitleService
    model_overrides: ModelOverrides
    reset_policy: ResetPolicy = field(default_factory=ResetPolicy)
    #: How long a deleted conversation can be brought back.
    undelete_for: timedelta = UNDELETE_FOR
    session_ids: SessionIdFactory = new_session_id
    lease_duration: timedelta = leases.LEASE_DURATION
    turns_at_once: int = DEFAULT_LIMIT


class TurnRunner:
    """One owner's run of one turn."""

    def __init__(
        self, means: EngineServices, begun: StartedWork, poked: asyncio.Event, slot: TurnPermit
    ) -> None:
        assert begun.turn is not None
        self._services, self._started, self._woken, self._permit = means, begun, poked, slot
        self._turn: Turn = begun.turn
        self._platform = get_platform(begun.route)
        # Retries while the lease is held: a model's answer or a tool's result cannot be repeated.
        self._store = RetryingStore(means.store)
        self._hooks = TurnHooks(means.store, means.hooks, self._turn, platform=self._platform)
        self._log = StoreTurnLog(
            self._store,
            means.event_bus,
            means.ids,
            means.context_cache,
            lease=begun.lease,
            turn=self._turn,
        )

    async def run(self) -> None:
        """
        Run the turn to its outcome, or until it waits for a person.

        Cancelling the run (a drain) leaves the turn running and releases the lease to the
        next owner.
        """
        try:
            async with keep_lease(
                self._services.store, self._started.lease, duration=self._services.lease_duration
            ):
                await self._run_or_fail()
        except LeaseLost as error:
            log.warning("turn_taken_over", turn=self._turn.id, error=str(error))
            self._log.retract_deltas("this process may no longer go on with it")
            if not isinstance(error, LeaseExpired):
                # If no owner has taken it, it outlasted its lease here, and would do so for ever.
                await self._services.store.write(
                    turns.release_expired_lease, self._started.lease, self._turn.id
                )
        except asyncio.CancelledError:
            await self._release_turn()
            raise
        finally:
            turn_context.clear_turn_context()

    async def _release_turn(self) -> None:
        if self._log.session is not None:
            self._services.hooks.emit_session_stop(self._log.session, self._platform)
        with suppress(StoreUnavailable):  # then the lease expires by itself
            await asyncio.shield(
                self._services.store.write(leases.release_lease, self._started.lease)
            )

    async def _run_or_fail(self) -> None:
        try:
            await self._run_until_stopped()
        except ClewError:
            raise
        except Exception:
            # A bug of ours: reported and stored, not retried for ever.
            log.exception("turn_failed", turn=self._turn.id)
            await self._finish_failed("an internal error, which the log describes", "internal")

    async def _run_until_stopped(self) -> None:
        await self._announce_turn()
        if self._turn.stop is not None:
            # Requested from a dead owner, or while it waited: nothing more begins.
            await self._finish_stopped(self._turn.stop)
            return
        if self._turn.resumes >= MAX_RESUMES:
            await self._finish_failed("it was interrupted by a restart three times", "interrupted")
            return
        work = asyncio.create_task(self._run_to_outcome(), name=f"turn:{self._turn.id}")
        watch = asyncio.create_task(self._wait_for_stop(), name=f"stop:{self._turn.id}")
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await _cancel_and_wait(work)
                await self._finish_stopped(watch.result())
                return
        finally:
            await _cancel_and_wait(watch)
            await _cancel_and_wait(work)
        work.result()

    async def _announce_turn(self) -> None:
        await self._log.read_context()
        session = self._log.session
        assert session is not None
        chosen = await self._services.model_overrides.get_model_chain(self._turn.conversation_id)
        await self._hooks.enter_session(session, (chosen or self._services.models).preferred_model)
        if not self._started.resumed:
            fresh = await self._store.read(
                entries.read_entries_after,
                self._turn.conversation_id,
                after=self._turn.first_seq - 1,
                limit=100,
            )
            self._log.publish_entries(fresh)
            await self._store_expiry_notice()
        self._services.event_bus.publish(
            self._turn.conversation_id, TurnStarted(turn=self._turn, session=session)
        )

    async def _store_expiry_notice(self) -> None:
        if self._turn.first_seq == 1:
            payload = await self._store.read(inbox.get_turn_payload, self._turn.id)
            if (left := read_notice(payload)) is not None:
                # A chat was notified when the message was accepted.
                await self._log.store_log_notice(left.user_notice)

    async def _wait_for_stop(self) -> StopRequest:
        while True:
            # Cleared before the read: a later request sets the event again.
            self._woken.clear()
            turn = await self._store.read(turn_queries.get_turn, self._turn.id)
            if turn.stop is not None:
                return turn.stop
            await self._woken.wait()

    async def _run_to_outcome(self) -> None:
        try:
            result = await self._request_from_models()
        except _AllModelsFailed as error:
            await self._finish_failed(error.failure.user_message, error.failure.kind.value)
            return
        match result:
            case FinalAnswer():
                await self._finish_answered(result)
            case AwaitingApproval():
                await self._store.write(turns.suspend_turn, self._started.lease, self._turn.id)
            case StepLimitReached(steps=steps):
                text = f"it used all {steps} model calls that a turn may make (agent.max_steps)"
                await self._finish_failed(text, "max_steps")
            case RepeatedCalls(tools=tools, times=times):
                text = f"it called {tools} {times} times in a row, with the same result each time"
                await self._finish_failed(text, "repeated_calls")

    async def _request_from_models(self) -> LoopResult:
        """
        Ask the models in order until one answers.

        :raises _AllModelsFailed: when no model answered
        """
        chosen = await self._services.model_overrides.get_model_chain(self._turn.conversation_id)
        models = chosen or self._services.models
        failure: ProviderFailure | None = None
        for number, model in models.iter_candidates():
            result = await self._request_with_retries(models, number, model)
            if not isinstance(result, ProviderFailure):
                models.record_success(number)
                return result
            failure = result
            beside = models.has_alternative(number)
            models.record_failure(number, failure)
            # Another model need not repeat the errors of this one.
            self._log.retries = {}
            if failure.kind not in FAILOVER_KINDS:
                break
            if beside and models.should_notify(number, self._turn.conversation_id):
                await self._log.store_notice(f"Another model is asked: {failure.user_message}.")
        assert failure is not None
        raise _AllModelsFailed(failure)

    async def _request_with_retries(
        self, models: ModelChain, number: int, model: Model
    ) -> LoopResult | ProviderFailure:
        waited = 0.0
        stream = self._services.event_bus.has_live_subscriber(self._turn.conversation_id)
        for attempt in itertools.count(1):
            result = await self._request_once(model, stream=stream)
            if not isinstance(result, ProviderFailure):
                return result
            if result.kind is FailureKind.TIMEOUT:
                # Without a stream, a long answer sends nothing until it is complete.
                stream = True
            elif result.kind in MALFORMED_KINDS and not self._log.partial_text:
                # If a server's streams are broken, complete answers often work.
                stream = not stream
            # Before its entry: a reader of the entry may find the turn closed already.
            self._log.retract_deltas(result.text)
            await self._log.store_attempt(result.text)
            if await self._recover_from_overflow(result, model):
                continue
            wait = models.retry_policy.next_delay(
                attempt, result, waited=waited, beside=models.has_alternative(number)
            )
            if wait is None:
                return result
            with self._permit.lend_while_waiting():
                await asyncio.sleep(wait)
            waited += wait
        raise AssertionError("unreachable")

    async def _request_once(self, model: Model, *, stream: bool) -> LoopResult | ProviderFailure:
        journal = StoreJournal(
            self._store,
            self._services.event_bus,
            self._services.ids,
            self._services.hooks.plugins,
            self._hooks,
            lease=self._started.lease,
            turn=self._turn,
            route=self._started.route,
        )
        self._log.wait_in = journal.wait_in = self._permit.lend_while_waiting
        self._log.on_step = journal.enter_step
        self._log.compact_to_fit = lambda tokens: self._compact_if_needed(tokens, model)
        journal.enter_step(self._log.steps)
        try:
            return await self._services.loop.run(self._log, journal, model, stream=stream)
        except ClewError:
            raise
        except Exception as error:  # noqa: BLE001  (the one place per turn; logged with traceback)
            failure = classify_error(error)
            if failure.kind is FailureKind.TOO_LARGE and not await self._log.has_images():
                failure = reclassify_text_only(failure)
            level = log.error if failure.kind is FailureKind.INTERNAL else log.warning
            level(
                "model_request_failed",
                turn=self._turn.id,
                kind=failure.kind.value,
                failure=failure.text,
                exc_info=True,
            )
            return failure

    async def _compact_if_needed(self, tokens: int, model: Model) -> bool:
        session = self._log.session
        assert session is not None
        compactions = self._services.compaction
        if not await compactions.should_compact(tokens, model, session, self._turn.first_seq):
            return False
        return (await self._compact_context(model)).moved

    async def _compact_context(self, model: Model, *, overflowed: bool = False) -> Compacted:
        done = await self._services.compaction.compact(
            self._turn.conversation_id,
            owner=self._started.lease.owner,
            lease=self._started.lease,
            overflowed=overflowed,
            asked=model,
        )
        return await self._report_compaction(done)

    async def _report_compaction(self, done: Compacted) -> Compacted:
        if done.moved:
            self._hooks.enter_successor(done.session_id)
        for notice in done.notices:
            await self._log.store_notice(notice)
        return done

    async def _recover_from_overflow(self, failure: ProviderFailure, model: Model) -> bool:
        """Return whether compaction resolved an overflow, so that the step can be repeated."""
        session = self._log.session
        if session is not None and failure.kind is FailureKind.TOO_LARGE:
            return await self._drop_old_images()
        if session is None or not _may_be_overflow(failure, self._log.tokens):
            return False
        if not await self._services.compaction.may_compact(session, self._turn.first_seq):
            return False
        done = await self._compact_context(model, overflowed=True)
        if done.busy:
            # The step cannot be repeated before that compaction ends: wait for it, then try again.
            with self._permit.lend_while_waiting():
                await self._services.compaction.wait_for_other_compaction(session)
            done = await self._compact_context(model, overflowed=True)
        return done.moved

    async def _drop_old_images(self) -> bool:
        """Drop older images from the context; return whether there were any."""
        done = await self._services.compaction.drop_old_images(
            self._turn.conversation_id,
            owner=self._started.lease.owner,
            lease=self._started.lease,
            turn_from=self._turn.first_seq,
        )
        return (await self._report_compaction(done)).moved

    async def _finish_answered(self, answer: FinalAnswer) -> None:
        drafts = [self._log.make_draft(message) for message in answer.unstored]
        text = build_final_text(
            answer.text,
            outcome=TurnOutcome.ANSWERED,
            steps=self._log.steps + 1,
            messages=self._log.message_count,
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
            DeliveryKind.ANSWER, text, markup=not is_blank(answer.text)
        )
        await self._hooks.record_answer(text)
        await self._finish_turn(TurnOutcome.ANSWERED, drafts, step=step, said=said)

    def _make_step(self, answer: FinalAnswer) -> turns.StepRecord | None:
        response = next((m for m in answer.unstored if isinstance(m, messages.ModelResponse)), None)
        return None if response is None else self._log.make_step(response, answer.instructions)

    async def _finish_failed(self, error: str, code: str) -> None:
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
        said = self._log.make_outbound_text(DeliveryKind.ANSWER, text, markup=False)
        await self._finish_turn(TurnOutcome.FAILED, drafts, error=text, code=code, said=said)

    async def _finish_stopped(self, stop: StopRequest) -> None:
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
                self._started.lease,
                session,
                self._turn,
                drafts=drafts,
                step=step,
                session_ids=self._services.session_ids,
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
                begun, f"{why}; it had begun and may have had its effect"
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
                    self._started.lease,
                    session,
                    self._turn.id,
                    outcome,
                    drafts=drafts,
                    error=error,
                    error_code=code,
                    step=step,
                    said=said,
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
        if done.outcome is TurnOutcome.ANSWERED:
            self._services.titles.schedule_title(self._turn.conversation_id)
        self._services.event_bus.publish(self._turn.conversation_id, TurnFinished(turn=done))


_STOP_REASONS = {
    StopRequest.STOP: "stopped by the user",
    StopRequest.INTERRUPT: "interrupted by a new message",
    StopRequest.ROLLBACK: "taken back for a new message",
    StopRequest.DELETE: "the conversation was deleted",
    StopRequest.CANCEL: "the caller went away",
}


def _may_be_overflow(failure: ProviderFailure, tokens: int) -> bool:
    """Return whether it may be an overflow: some providers answer a long request with nothing."""
    if failure.kind is FailureKind.EMPTY:
        return tokens > LARGE_CONTEXT
    return failure.kind is FailureKind.OVERFLOW


class _AllModelsFailed(Exception):
    def __init__(self, failure: ProviderFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


async def _cancel_and_wait(task: asyncio.Task[object]) -> None:
    """Cancel a task, wait until it has ended, and retrieve its outcome."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
