"""The execution of one turn under a lease, from its stored state to its outcome."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from clew import wording
from clew.agent import turn_context
from clew.agent.loop import AwaitingApproval, FinalAnswer, RepeatedCalls, StepLimitReached
from clew.background import cancel_and_wait, shield_until_done
from clew.core.events import TurnStarted
from clew.core.expiry_notice import read_notice
from clew.core.turn import MAX_RESUMES, StopRequest
from clew.engine.lease_renewal import keep_lease
from clew.engine.store_retry import RetryingStore
from clew.engine.tool_journal import StoreJournal
from clew.engine.turn_compaction import TurnCompaction
from clew.engine.turn_contexts import make_turn_context
from clew.engine.turn_failover import AllModelsFailed, FailoverPolicy
from clew.engine.turn_finisher import TurnFinisher
from clew.engine.turn_hooks import TurnHooks
from clew.engine.turn_log import StoreTurnLog
from clew.errors import ClewError, LeaseExpired, LeaseLost, StoreUnavailable
from clew.store.transactions import entries, inbox, leases, turn_queries, turns

if TYPE_CHECKING:
    from clew.core.turn import Turn
    from clew.engine.protocols import WaitPermit
    from clew.engine.services import EngineServices
    from clew.store.transactions.turns import StartedWork

log = structlog.get_logger(__name__)


class TurnRunner:
    """One owner's run of one turn."""

    def __init__(
        self,
        services: EngineServices,
        started: StartedWork,
        *,
        woken: asyncio.Event,
        permit: WaitPermit,
    ) -> None:
        """Wire the parts of the run; ``woken`` is set when a stop may have been requested."""
        assert started.turn is not None
        turn, lease = started.turn, started.lease
        self._services, self._started, self._woken = services, started, woken
        self._turn: Turn = turn
        context = make_turn_context(services, started)
        self._platform = context.platform
        # Retries while the lease is held: a model's answer or a tool's result cannot be repeated.
        self._store = store = RetryingStore(services.store)
        self._trace = trace = services.tracing.trace_turn(started, context)
        self._hooks = hooks = TurnHooks(
            services.store, services.hooks, turn, context=context, trace=trace
        )
        compactor = TurnCompaction(services.compaction, hooks, permit, lease=lease, turn=turn)
        tools = context.profile and context.profile.tools
        self._log = StoreTurnLog(
            store, services, permit, compactor, lease=lease, turn=turn, trace=trace, tools=tools
        )
        new_journal = partial(
            StoreJournal,
            store,
            services,
            hooks,
            permit,
            self._log,
            lease=lease,
            turn=turn,
            context=context,
        )
        self._failover = FailoverPolicy(
            services, self._log, new_journal, turn=turn, permit=permit, compactor=compactor
        )
        self._finisher = TurnFinisher(services, store, self._log, hooks, lease=lease, turn=turn)

    async def run(self) -> None:
        """
        Run the turn to its outcome, or until it waits for a person.

        Cancelling the run (a drain) leaves the turn running and releases the lease to the
        next owner.
        """
        with self._trace.running():
            try:
                async with keep_lease(
                    self._services.store,
                    self._started.lease,
                    duration=self._services.lease_duration,
                ):
                    await self._run_unless_stopped()
            except LeaseLost as error:
                await self._handle_lost_lease(error)
            except asyncio.CancelledError:
                await self._release_turn()
                raise
            finally:
                turn_context.clear_turn_context()

    async def _handle_lost_lease(self, error: LeaseLost) -> None:
        log.warning("turn_taken_over", turn=self._turn.id, error=str(error))
        self._log.retract_deltas("this process may no longer run it")
        if not isinstance(error, LeaseExpired):
            # If no owner has taken it, it outlasted its lease here, and would do so for ever.
            await self._services.store.write(
                turns.release_expired_lease, self._started.lease, self._turn.id
            )

    async def _release_turn(self) -> None:
        if self._log.session is not None:
            self._services.hooks.emit_session_stop(self._log.session, self._platform)
        with suppress(StoreUnavailable):  # then the lease expires by itself
            await shield_until_done(
                self._services.store.write(leases.release_lease, self._started.lease)
            )

    async def _run_unless_stopped(self) -> None:
        try:
            await self._announce_turn()
            if await self._end_without_request():
                return
            work = asyncio.create_task(self._run_to_outcome(), name=f"turn:{self._turn.id}")
            if (stop := await self._watch_for_stop(work)) is not None:
                await self._finisher.finish_stopped(stop)
        except ClewError:
            raise
        except Exception:
            # A bug of ours: reported and stored, not retried for ever.
            log.exception("turn_failed", turn=self._turn.id)
            await self._finisher.finish_failed(
                "an internal error, which the log describes", "internal"
            )

    async def _end_without_request(self) -> bool:
        """Return whether the turn ended before its model was asked."""
        if self._turn.stop is not None:
            # Requested from a dead owner, or while it waited: nothing more begins.
            await self._finisher.finish_stopped(self._turn.stop)
            return True
        if self._turn.resumes >= MAX_RESUMES:
            await self._finisher.finish_failed(
                "it was interrupted by a restart three times", "interrupted"
            )
            return True
        return False

    async def _watch_for_stop(self, work: asyncio.Task[None]) -> StopRequest | None:
        """Wait for the work; return the stop that cancelled it, or ``None`` if it ended."""
        watch = asyncio.create_task(self._wait_for_stop(), name=f"stop:{self._turn.id}")
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await cancel_and_wait(work)
                return watch.result()
        finally:
            await cancel_and_wait(watch, work)
        work.result()
        return None

    async def _wait_for_stop(self) -> StopRequest:
        while True:
            # Cleared before the read: a later request sets the event again.
            self._woken.clear()
            turn = await self._store.read(turn_queries.get_turn, self._turn.id)
            if turn.stop is not None:
                return turn.stop
            await self._woken.wait()

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
                await self._log.store_log_notice(wording.format_expiry_notice(left))

    async def _run_to_outcome(self) -> None:
        try:
            result = await self._failover.request_answer()
        except AllModelsFailed as error:
            failure = error.failure
            await self._finisher.finish_failed(failure.user_message, failure.kind.value)
            return
        match result:
            case FinalAnswer():
                await self._finisher.finish_answered(result)
            case AwaitingApproval():
                self._trace.record_end(
                    await self._store.write(turns.suspend_turn, self._started.lease, self._turn.id)
                )
            case StepLimitReached(steps=steps):
                text = f"it used all {steps} model calls that a turn may make (agent.max_steps)"
                await self._finisher.finish_failed(text, "max_steps")
            case RepeatedCalls(tools=tools, times=times):
                text = f"it called {tools} {times} times in a row, with the same result each time"
                await self._finisher.finish_failed(text, "repeated_calls")
