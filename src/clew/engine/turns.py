"""Carrying out one turn under a lease, from whatever is stored to its outcome."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from clew.agent import current, messages, results
from clew.agent.failures import (
    FAILOVER_KINDS,
    MALFORMED_KINDS,
    FailureKind,
    ProviderFailure,
    classify_error,
    reclassify_text_only,
)
from clew.agent.loop import AwaitingApproval, FinalAnswer, RepeatedCalls, StepLimitReached
from clew.core.compaction import LARGE_CONTEXT
from clew.core.conversation import UNDELETE_FOR
from clew.core.delivery import DeliveryKind
from clew.core.entry import EntryKind, NewEntry
from clew.core.events import TurnFinished, TurnStarted
from clew.core.expired import read_notice
from clew.core.ids import new_session_id
from clew.core.journal import CallStatus
from clew.core.reset import ResetPolicy
from clew.core.text import is_blank
from clew.core.turn import MAX_RESUMES, StopRequest, TurnOutcome
from clew.engine.answers import CUT, answer_text
from clew.engine.facts import platform_of
from clew.engine.journal import Journal, batch_results
from clew.engine.lasting import Lasting
from clew.engine.leases import renewing
from clew.engine.slots import AT_ONCE
from clew.engine.turn_facts import TurnFacts
from clew.engine.turn_log import NOTICE, TurnLog
from clew.errors import ClewError, LeaseExpired, LeaseLost, StoreUnavailable, TurnRolledBack
from clew.store.transactions import entries, inbox, leases, rewinds, stops, turns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from clew.agent.choice import ModelChain
    from clew.agent.loop import AgentLoop, LoopResult
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.core.delivery import OutboundText
    from clew.core.ids import IdGenerator, SessionIdFactory
    from clew.core.turn import Turn
    from clew.engine.compaction import Compacted, Compactions
    from clew.engine.facts import Facts
    from clew.engine.hub import Hub
    from clew.engine.model_choice import ModelChoice
    from clew.engine.slots import Slot
    from clew.engine.titles import Titles
    from clew.engine.warm import Warm
    from clew.store.contract import Store
    from clew.store.transactions.turns import StartedWork

log = structlog.get_logger(__name__)

#: How providers say that a model takes no pictures.
_REFUSED = frozenset({FailureKind.REFUSED.value, FailureKind.NO_MODEL.value})


@dataclass(frozen=True, kw_only=True, slots=True)
class Means:
    """What turns are carried out with; the same for all turns of a process."""

    store: Store
    hub: Hub
    ids: IdGenerator
    loop: AgentLoop
    models: ModelChain
    compactions: Compactions
    warm: Warm
    facts: Facts
    titles: Titles
    choice: ModelChoice
    reset: ResetPolicy = field(default_factory=ResetPolicy)
    #: How long a deleted conversation can be brought back.
    undelete_for: timedelta = UNDELETE_FOR
    session_ids: SessionIdFactory = new_session_id
    lease: timedelta = leases.LEASE_DURATION
    turns_at_once: int = AT_ONCE


class TurnWork:
    """One owner's work on one turn."""

    def __init__(self, means: Means, begun: StartedWork, poked: asyncio.Event, slot: Slot) -> None:
        assert begun.turn is not None
        self._means, self._begun, self._poked, self._slot = means, begun, poked, slot
        self._turn: Turn = begun.turn
        self._platform = platform_of(begun.route)
        # As long as the lease is held: what a model said or a tool did is not to be had again.
        self._store = Lasting(means.store)
        self._facts = TurnFacts(means.store, means.facts, self._turn, platform=self._platform)
        self._log = TurnLog(
            self._store, means.hub, means.ids, means.warm, lease=begun.lease, turn=self._turn
        )

    async def run(self) -> None:
        """
        Carry the turn to its outcome, or to where it waits.

        Cancelling it (a drain) leaves the turn running and lets the lease go for the next owner.
        """
        try:
            async with renewing(self._means.store, self._begun.lease, duration=self._means.lease):
                await self._carry_out_or_fail()
        except LeaseLost as error:
            log.warning("turn_taken_over", turn=self._turn.id, error=str(error))
            self._log.retract("this process may no longer go on with it")
            if not isinstance(error, LeaseExpired):
                # Where nobody has taken it, it outlasted its lease here, and would do so for ever.
                await self._means.store.write(
                    turns.release_expired_lease, self._begun.lease, self._turn.id
                )
        except asyncio.CancelledError:
            await self._let_go()
            raise
        finally:
            current.clear_turn_context()

    async def _let_go(self) -> None:
        if self._log.session is not None:
            self._means.facts.stopping(self._log.session, self._platform)
        with suppress(StoreUnavailable):  # then the lease ends by itself
            await asyncio.shield(self._means.store.write(leases.release_lease, self._begun.lease))

    async def _carry_out_or_fail(self) -> None:
        try:
            await self._carry_out()
        except ClewError:
            raise
        except Exception:
            # A fault of ours: said and stored, not tried for ever.
            log.exception("turn_failed", turn=self._turn.id)
            await self._fail("an internal error, which the log describes", "internal")

    async def _carry_out(self) -> None:
        await self._announce()
        if self._turn.stop is not None:
            # Asked of an owner that is gone, or while it waited: nothing more is begun.
            await self._stopped(self._turn.stop)
            return
        if self._turn.resumes >= MAX_RESUMES:
            await self._fail("it was interrupted by a restart three times", "interrupted")
            return
        work = asyncio.create_task(self._work(), name=f"turn:{self._turn.id}")
        watch = asyncio.create_task(self._stop_asked(), name=f"stop:{self._turn.id}")
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await _ended(work)
                await self._stopped(watch.result())
                return
        finally:
            await _ended(watch)
            await _ended(work)
        work.result()

    async def _announce(self) -> None:
        await self._log.context()
        session = self._log.session
        assert session is not None
        chosen = await self._means.choice.models(self._turn.conversation_id)
        await self._facts.begun(session, (chosen or self._means.models).preferred_model)
        if not self._begun.resumed:
            fresh = await self._store.read(
                entries.read_entries_after,
                self._turn.conversation_id,
                after=self._turn.first_seq - 1,
                limit=100,
            )
            self._log.tell(fresh)
            await self._tell_what_was_left()
        self._means.hub.publish(
            self._turn.conversation_id, TurnStarted(turn=self._turn, session=session)
        )

    async def _tell_what_was_left(self) -> None:
        if self._turn.first_seq == 1:
            payload = await self._store.read(inbox.get_turn_payload, self._turn.id)
            if (left := read_notice(payload)) is not None:
                # A chat was told when the message was accepted.
                await self._log.store_aside(left.user_notice)

    async def _stop_asked(self) -> StopRequest:
        while True:
            # Cleared before the look: a request that arrives after it sets the event again.
            self._poked.clear()
            turn = await self._store.read(stops.get_turn, self._turn.id)
            if turn.stop is not None:
                return turn.stop
            await self._poked.wait()

    async def _work(self) -> None:
        try:
            result = await self._asked_until_answered()
        except _GaveUp as error:
            await self._fail(error.failure.user_message, error.failure.kind.value)
            return
        match result:
            case FinalAnswer():
                await self._answer(result)
            case AwaitingApproval():
                await self._store.write(turns.suspend_turn, self._begun.lease, self._turn.id)
            case StepLimitReached(steps=steps):
                text = f"it used all {steps} model calls that a turn may make (agent.max_steps)"
                await self._fail(text, "max_steps")
            case RepeatedCalls(tools=tools, times=times):
                text = f"it called {tools} {times} times in a row, with the same result each time"
                await self._fail(text, "repeated_calls")

    async def _asked_until_answered(self) -> LoopResult:
        """:raises _GaveUp: when no model answered"""
        chosen = await self._means.choice.models(self._turn.conversation_id)
        models = chosen or self._means.models
        failure: ProviderFailure | None = None
        for number, model in models.iter_candidates():
            result = await self._ask(models, number, model)
            if not isinstance(result, ProviderFailure):
                models.record_success(number)
                return result
            failure = result
            beside = models.has_alternative(number)
            models.record_failure(number, failure)
            # What one model did wrong another need not.
            self._log.retries = {}
            if failure.kind not in FAILOVER_KINDS:
                break
            if beside and models.should_notify(number, self._turn.conversation_id):
                await self._log.store_notice(f"Another model is asked: {failure.user_message}.")
        assert failure is not None
        raise _GaveUp(failure)

    async def _ask(
        self, models: ModelChain, number: int, model: Model
    ) -> LoopResult | ProviderFailure:
        waited = 0.0
        stream = self._means.hub.followed(self._turn.conversation_id)
        for attempt in itertools.count(1):
            result = await self._try(model, stream=stream)
            if not isinstance(result, ProviderFailure):
                return result
            if result.kind is FailureKind.TIMEOUT:
                # A long answer is silent until it is whole, but not where it comes in pieces.
                stream = True
            elif result.kind in MALFORMED_KINDS and not self._log.shown:
                # Where a server's streams are broken, whole answers often are not.
                stream = not stream
            # Before its entry: who reads the entry may find the turn closed already.
            self._log.retract(result.text)
            await self._log.store_attempt(result.text)
            if await self._made_room(result, model):
                continue
            wait = models.retry_policy.next_delay(
                attempt, result, waited=waited, beside=models.has_alternative(number)
            )
            if wait is None:
                return result
            with self._slot.waiting():
                await asyncio.sleep(wait)
            waited += wait
        raise AssertionError("unreachable")

    async def _try(self, model: Model, *, stream: bool) -> LoopResult | ProviderFailure:
        journal = Journal(
            self._store,
            self._means.hub,
            self._means.ids,
            self._means.facts.plugins,
            self._facts,
            lease=self._begun.lease,
            turn=self._turn,
            route=self._begun.route,
        )
        self._log.wait_in = journal.wait_in = self._slot.waiting
        self._log.on_step = journal.enter_step
        self._log.make_fit = lambda tokens: self._fit(tokens, model)
        journal.enter_step(self._log.steps)
        try:
            return await self._means.loop.run(self._log, journal, model, stream=stream)
        except ClewError:
            raise
        except Exception as error:  # noqa: BLE001  (the one place per turn; logged with traceback)
            failure = classify_error(error)
            if failure.kind is FailureKind.TOO_LARGE and not await self._log.shows_pictures():
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

    async def _fit(self, tokens: int, model: Model) -> bool:
        session = self._log.session
        assert session is not None
        compactions = self._means.compactions
        if not await compactions.needed(tokens, model, session, self._turn.first_seq):
            return False
        return (await self._compact(model)).moved

    async def _compact(self, model: Model, *, overflowed: bool = False) -> Compacted:
        done = await self._means.compactions.compact(
            self._turn.conversation_id,
            owner=self._begun.lease.owner,
            lease=self._begun.lease,
            overflowed=overflowed,
            asked=model,
        )
        return await self._told(done)

    async def _told(self, done: Compacted) -> Compacted:
        if done.moved:
            self._facts.moved(done.session_id)
        for notice in done.notices:
            await self._log.store_notice(notice)
        return done

    async def _made_room(self, failure: ProviderFailure, model: Model) -> bool:
        """Whether an overflow was answered by a compaction, so that the step can be repeated."""
        session = self._log.session
        if session is not None and failure.kind is FailureKind.TOO_LARGE:
            return await self._lightened()
        if session is None or not _may_be_too_long(failure, self._log.tokens):
            return False
        if not await self._means.compactions.allowed(session, self._turn.first_seq):
            return False
        done = await self._compact(model, overflowed=True)
        if done.busy:
            # Without room the step cannot be repeated: wait for whoever is at it, then look again.
            with self._slot.waiting():
                await self._means.compactions.others_are_done(session)
            done = await self._compact(model, overflowed=True)
        return done.moved

    async def _lightened(self) -> bool:
        """Leave older pictures out of the context; whether there were any."""
        done = await self._means.compactions.lighten(
            self._turn.conversation_id,
            owner=self._begun.lease.owner,
            lease=self._begun.lease,
            turn_from=self._turn.first_seq,
        )
        return (await self._told(done)).moved

    async def _answer(self, answer: FinalAnswer) -> None:
        drafts = [self._log.draft(message) for message in answer.unstored]
        text = answer_text(
            answer.text,
            outcome=TurnOutcome.ANSWERED,
            steps=self._log.steps + 1,
            messages=self._log.messages,
        )
        if answer.is_tool_output:
            drafts.append(self._log.aside(EntryKind.EVENT, NOTICE, text))
        elif answer.is_truncated:
            drafts.append(self._log.aside(EntryKind.EVENT, NOTICE, CUT))
            # Who reads no log is told with the answer.
            text = f"{text}\n\n({CUT})"
        step = self._step_of(answer)
        said = self._log.said(DeliveryKind.ANSWER, text, markup=not is_blank(answer.text))
        await self._facts.answering(text)
        await self._finish(TurnOutcome.ANSWERED, drafts, step=step, said=said)

    def _step_of(self, answer: FinalAnswer) -> turns.StepRecord | None:
        response = next((m for m in answer.unstored if isinstance(m, messages.ModelResponse)), None)
        return None if response is None else self._log.step(response, answer.instructions)

    async def _fail(self, error: str, code: str) -> None:
        if self._log.shown:
            self._log.retract(error)
        text = answer_text(
            "",
            outcome=TurnOutcome.FAILED,
            error=error,
            code=code,
            steps=self._log.steps,
            messages=self._log.messages,
            pictures=code in _REFUSED and await self._log.shows_pictures(),
        )
        drafts = [
            *await self._context_closed("the turn failed", begun=CallStatus.UNKNOWN),
            self._log.aside(EntryKind.EVENT, NOTICE, text),
        ]
        said = self._log.said(DeliveryKind.ANSWER, text, markup=False)
        await self._finish(TurnOutcome.FAILED, drafts, error=text, code=code, said=said)

    async def _stopped(self, stop: StopRequest) -> None:
        """A person, or whoever speaks for one, ended the turn: what was said stays in the log."""
        said, why, shown = None, _WHY[stop], self._log.shown
        drafts = await self._context_closed(why, begun=CallStatus.CANCELLED, shown=shown)
        if (
            len(drafts) == 1
            and drafts[0].text
            and stop in (StopRequest.STOP, StopRequest.INTERRUPT)
        ):
            # What the context has, people have read.
            said = self._log.said(DeliveryKind.TEXT, shown)
        drafts.append(self._log.aside(EntryKind.EVENT, NOTICE, why))
        if stop is StopRequest.ROLLBACK:
            await self._roll_back(drafts)
        else:
            await self._finish(TurnOutcome.CANCELLED, drafts, said=said)

    async def _roll_back(
        self, drafts: Sequence[NewEntry], step: turns.StepRecord | None = None
    ) -> None:
        done = await self._log.in_head(
            lambda session: self._store.bare.write(
                rewinds.roll_back_turn,
                self._begun.lease,
                session,
                self._turn,
                drafts=drafts,
                step=step,
                session_ids=self._means.session_ids,
            )
        )
        self._tell_closed(done)

    async def _context_closed(
        self, why: str, *, begun: CallStatus, shown: str = ""
    ) -> list[NewEntry]:
        """
        Return what ends the turn in the context: results of open calls, what was shown, a stand-in.

        A call that had begun may have had its effect: the model learns it by the status ``begun``.
        """
        try:
            context = await self._log.context()
        except ValueError:
            # It cannot be read, so it cannot be sent again: every turn here ends as this one.
            return []
        last: ModelMessage | None = context.messages[-1] if context.messages else None
        stand_in = messages.message_to_draft(
            self._means.ids.new_entry_id(), messages.make_missing_response(why)
        )
        if not isinstance(last, messages.ModelResponse):
            return [
                stand_in
                if is_blank(shown)
                else self._log.draft(messages.make_interrupted_response(shown))
            ]
        if not messages.extract_call_ids(last):
            return []
        return [await self._calls_closed(last, why, begun=begun), stand_in]

    async def _calls_closed(
        self, asked: messages.ModelResponse, why: str, *, begun: CallStatus
    ) -> NewEntry:
        known, told = await batch_results(
            self._store,
            self._turn,
            self._log.steps,
            begun=results.make_text_result(
                begun, f"{why}; it had begun and may have had its effect"
            ),
        )
        otherwise = results.make_text_result(CallStatus.CANCELLED, why)
        closed = results.complete_batch(asked, known, otherwise=otherwise)
        self._facts.closing(asked, known, otherwise=otherwise, told=told)
        return messages.message_to_draft(self._means.ids.new_entry_id(), closed)

    async def _finish(
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
            done = await self._log.in_head(
                lambda session: self._store.bare.write(
                    turns.finish_turn,
                    self._begun.lease,
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
            notice = self._log.aside(EntryKind.EVENT, NOTICE, _WHY[StopRequest.ROLLBACK])
            await self._roll_back([*drafts, notice], step)
        else:
            self._tell_closed(done)

    def _tell_closed(self, done: Turn) -> None:
        self._facts.ended(self._log.session, done)
        if done.outcome is TurnOutcome.ANSWERED:
            self._means.titles.after_turn(self._turn.conversation_id)
        self._means.hub.publish(self._turn.conversation_id, TurnFinished(turn=done))


_WHY = {
    StopRequest.STOP: "stopped by the user",
    StopRequest.INTERRUPT: "interrupted by a new message",
    StopRequest.ROLLBACK: "taken back for a new message",
    StopRequest.DELETE: "the conversation was deleted",
    StopRequest.CANCEL: "the caller went away",
}


def _may_be_too_long(failure: ProviderFailure, tokens: int) -> bool:
    """Whether it was an overflow: some providers answer a long request with nothing."""
    if failure.kind is FailureKind.EMPTY:
        return tokens > LARGE_CONTEXT
    return failure.kind is FailureKind.OVERFLOW


class _GaveUp(Exception):
    def __init__(self, failure: ProviderFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


async def _ended(task: asyncio.Task[object]) -> None:
    """Cancel a task and wait until it has ended; its outcome is retrieved."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
