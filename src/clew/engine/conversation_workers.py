"""
Conversation workers: one task per conversation for as long as it has work.

An idle conversation has no worker and costs nothing. All work is in the store; a worker
only asks for the next item until there is none.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from clew.background import shield_until_done
from clew.core.turn import StartMode
from clew.engine.event_bus import STORE_CHANGED
from clew.engine.held_completions import hold_completion
from clew.engine.log_throttle import LogThrottle
from clew.engine.queued_commands import COMPRESS
from clew.engine.turn_concurrency import TurnLimiter
from clew.engine.turn_contexts import make_first_context
from clew.engine.turn_log import compose_user_message
from clew.engine.turn_runner import TurnRunner
from clew.errors import (
    LeaseHeld,
    LeaseLost,
    NotFound,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from clew.store.transactions import conversations, due_work, turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.core.ids import ConversationId, OwnerId
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.engine.services import EngineServices
    from clew.engine.turn_concurrency import TurnPermit
    from clew.store.transactions.turns import StartedWork

log = structlog.get_logger(__name__)

#: Seconds that a worker waits before it retries after a store failure.
_RETRY_PAUSE = 1.0
_MAX_RETRY_PAUSE = 60.0
#: Seconds for which new work is left to the process that accepted it.
_HANDOFF_DELAY = 0.15
#: Seconds for queued commands to finish when the process stops.
_COMMAND_DRAIN_TIMEOUT = 5.0


class _Worker:
    """The state of a conversation that is being worked on."""

    def __init__(self) -> None:
        #: Set when something about the conversation may have changed.
        self.woken = asyncio.Event()
        #: Set as well; cleared by the worker before it asks for work.
        self.has_more = True
        #: A model request is running; it is cancelled when the process stops.
        self.is_requesting_model = False
        #: Consecutive failures to store its work.
        self.failures = 0

    def fail(self) -> float:
        """Count a failure; return the seconds to wait before the next attempt."""
        self.failures += 1
        return min(_RETRY_PAUSE * 2**self.failures, _MAX_RETRY_PAUSE)


class ConversationWorkers:
    """The workers of one process, started where there is work."""

    def __init__(
        self,
        means: EngineServices,
        owner: OwnerId,
        execute: Callable[[Lease, InboxItem], Awaitable[None]],
    ) -> None:
        self._services, self._owner, self._execute = means, owner, execute
        self._workers: dict[ConversationId, _Worker] = {}
        self._tasks: dict[ConversationId, asyncio.Task[None]] = {}
        self._timers: dict[ConversationId, asyncio.TimerHandle] = {}
        self._limiter = TurnLimiter(means.turns_at_once)
        self._throttle = LogThrottle()
        self._draining = False

    def wake(self, conversation: ConversationId) -> None:
        """Start the conversation's worker, or wake it if it runs."""
        if self._draining:
            return
        # The worker sets the timer again if it is still needed.
        if timer := self._timers.pop(conversation, None):
            timer.cancel()
        if actor := self._workers.get(conversation):
            actor.has_more = True
            actor.woken.set()
            return
        actor = self._workers[conversation] = _Worker()
        task = asyncio.create_task(
            self._run_worker(conversation, actor), name=f"actor:{conversation}"
        )
        self._tasks[conversation] = task

    def wake_in(self, conversation: ConversationId, millis: int) -> None:
        """Wake the worker when an item is due."""
        if self._draining:
            return
        if timer := self._timers.pop(conversation, None):
            timer.cancel()
        if millis <= 0:
            self.wake(conversation)
            return
        loop = asyncio.get_running_loop()
        self._timers[conversation] = loop.call_later(millis / 1000, self._on_timer, conversation)

    def wake_deferred(self, conversation: ConversationId) -> None:
        """
        Wake the worker after a change by another process.

        A worker that runs here is woken at once. Otherwise the work is left to the process
        that accepted the input: its front shows the answer as it streams, and the others
        need not query in vain. They check a moment later in case that process died.
        """
        if conversation in self._workers:
            self.wake(conversation)
            return
        timer = self._timers.get(conversation)
        if timer is None or timer.when() > asyncio.get_running_loop().time() + _HANDOFF_DELAY:
            self.wake_in(conversation, round(_HANDOFF_DELAY * 1000))

    def _on_timer(self, conversation: ConversationId) -> None:
        self._timers.pop(conversation, None)
        self.wake(conversation)

    async def wait_until_idle(self) -> None:
        """Wait until no conversation is being worked on here."""
        while tasks := list(self._tasks.values()):
            await asyncio.wait(tasks)

    async def drain(self) -> None:
        """
        Stop all workers and release running turns to the next owner, which continues them.

        Commands that need no model run first, within a time limit: a person who leaves
        after one need not come back for it, and this process notifies the plugins.
        """
        self._draining = True
        for timer in self._timers.values():
            timer.cancel()
        tasks = dict(self._tasks)
        for conversation, actor in self._workers.items():
            if actor.is_requesting_model:
                tasks[conversation].cancel()
            actor.woken.set()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=_COMMAND_DRAIN_TIMEOUT)
        if left := [task for task in tasks.values() if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left)

    async def _run_worker(self, conversation: ConversationId, actor: _Worker) -> None:
        try:
            while actor.has_more:
                actor.has_more = False
                await self._run_next(conversation, actor)
        except Exception as error:  # one conversation's failure must not stop the others
            if isinstance(error, NotFound) and await self._is_deleted(conversation):
                # Deleted meanwhile: nothing is left to do.
                log.info("conversation_gone", conversation=conversation)
            else:
                log.exception("actor_failed", conversation=conversation)
        finally:
            # In one step of the event loop: a wake comes before this or finds no worker.
            del self._workers[conversation], self._tasks[conversation]
            self._services.event_bus.publish(conversation, STORE_CHANGED)

    async def _is_deleted(self, conversation: ConversationId) -> bool:
        try:
            await self._services.store.read(conversations.get_conversation, conversation)
        except NotFound:
            return True
        except StoreError:
            pass
        return False

    async def _run_next(self, conversation: ConversationId, actor: _Worker) -> None:
        """Run the next item of work, if there is one and no other owner works on it."""
        # It queues from now on, not from when it was found to be due.
        with self._limiter.open_permit(actor.woken) as slot:
            pause = await self._try_next(conversation, actor, slot)
        if pause:
            # New input is tried at once: a person waits for the answer.
            actor.woken.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(actor.woken.wait(), pause)

    async def _try_next(
        self, conversation: ConversationId, actor: _Worker, slot: TurnPermit
    ) -> float:
        """
        Run the next item of work.

        :return: seconds to wait before the next attempt
        """
        try:
            begun = await self._begin_work(conversation, actor, slot)
        except (LeaseHeld, NotFound):
            return 0
        except StoreError as error:
            self._report_store_failure(conversation, error)
            actor.has_more = True
            return _RETRY_PAUSE
        if begun is None or (self._draining and _requests_model(begun)):
            return 0
        actor.has_more, actor.is_requesting_model = True, _requests_model(begun)
        try:
            if begun.turn is not None:
                await TurnRunner(self._services, begun, woken=actor.woken, permit=slot).run()
            elif begun.item is not None and begun.held is not None:
                await hold_completion(self._services, begun.lease, begun.item, begun.held)
            elif begun.item is not None:
                await self._execute(begun.lease, begun.item)
            if begun.turn is None:
                self._services.after_turn.schedule(conversation, answered=False)
        except (StoreFull, StoreDamaged, StoreUnavailable) as error:
            # Otherwise the model would be asked, and paid, again for what cannot be stored.
            self._report_store_failure(conversation, error)
            return actor.fail()
        except LeaseLost as error:
            # Paused for too long, with a command: whoever has the lease executes it, and it is
            # found here again if nobody has.
            log.warning("work_taken_over", conversation=conversation, error=str(error))
            return actor.fail()
        finally:
            actor.is_requesting_model = False
        actor.failures = 0
        self._services.event_bus.clear_store_failure(conversation)
        return 0

    def _report_store_failure(self, conversation: ConversationId, error: StoreError) -> None:
        # One log line for all conversations: a full disk blocks every one of them.
        self._throttle.warn_store_failure(log, "store_failed", error, conversation=conversation)
        if not isinstance(error, StoreUnavailable):
            # A store that is away is waited for.
            self._services.event_bus.record_store_failure(conversation, error)

    async def _begin_work(
        self, conversation: ConversationId, actor: _Worker, slot: TurnPermit
    ) -> StartedWork | None:
        if not await self._wait_to_begin(conversation, actor, slot):
            return None
        # After an outage the work may be found before the proof of life is back: others would see a
        # dead owner, take over its work at once and ask the model a second time.
        await self._services.store.register_owner(self._owner)
        # Completed even during a drain: the lease that it takes is released afterwards.
        turn, tracing = self._services.ids.new_turn_id(), self._services.tracing
        return await shield_until_done(
            self._services.store.write(
                turns.begin_work,
                conversation,
                owner=self._owner,
                turn=turn,
                annotate=self._services.notes.bind(
                    partial(make_first_context, self._services, turn)
                ),
                compose=compose_user_message,
                session_ids=self._services.session_ids,
                duration=self._services.lease_duration,
                limits=self._services.unattended_limits,
                name_trace=tracing.name_trace if tracing.is_active else None,
            )
        )

    async def _wait_to_begin(
        self, conversation: ConversationId, actor: _Worker, slot: TurnPermit
    ) -> bool:
        """
        Return whether work may begin now; a turn first waits for a permit.

        Reads first: beginning takes the lease, which is a write even if there is nothing to
        do.
        """
        while True:
            # Cleared before the read: anything stored later sets it again.
            actor.woken.clear()
            due = await self._services.store.read(
                due_work.get_due_delay,
                conversation,
                me=self._owner,
                duration=self._services.lease_duration,
            )
            if due is None:
                return False
            wait, begins = due
            if wait > 0:
                self.wake_in(conversation, wait)
                return False
            if begins is not StartMode.AT_ONCE:
                if self._draining:
                    return False
                slot.request(suspect=begins is StartMode.ALONE)
            if begins is StartMode.AT_ONCE or slot.granted.is_set():
                return True
            # Until a permit is granted or other work is due: a stop needs no permit.
            await actor.woken.wait()


def _requests_model(begun: StartedWork) -> bool:
    """Return whether the work sends a request to a model."""
    return begun.turn is not None or (begun.item is not None and begun.item.text == COMPRESS)
