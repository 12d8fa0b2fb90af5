"""
Actors: one line of work per conversation, for as long as it has work.

An idle conversation has no actor and costs nothing. What is to be done is in the store; an actor
only asks for the next thing until there is none.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from clew.core.turn import StartMode
from clew.engine.commands import COMPRESS
from clew.engine.hub import CHANGED
from clew.engine.log_throttle import LogThrottle
from clew.engine.slots import Slots
from clew.engine.turn_log import compose
from clew.engine.turns import TurnWork
from clew.engine.uncancelled import uncancelled
from clew.errors import (
    LeaseHeld,
    NotFound,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from clew.store.transactions import conversations, turns, work

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.core.ids import ConversationId, OwnerId
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.engine.slots import Slot
    from clew.engine.turns import Means
    from clew.store.transactions.turns import StartedWork

log = structlog.get_logger(__name__)

#: How long an actor waits before it asks a store that failed again.
_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
#: Seconds for which new work is left to the process that it came to.
_LEFT_TO_OTHERS = 0.15
#: Seconds in which commands that were filed may be carried out when the process stops.
_COMMANDS = 5.0


class _Actor:
    """A conversation that is being worked on."""

    def __init__(self) -> None:
        #: Set when something about the conversation may have changed.
        self.poked = asyncio.Event()
        #: Set too; cleared by the actor before it asks for work.
        self.more = True
        #: A model is asked, which nobody waits for where the process stops.
        self.asks = False
        #: How often in a row what it did could not be stored.
        self.failures = 0


class Actors:
    """Starts an actor where there is work, and ends all of them when it is told to drain."""

    def __init__(
        self,
        means: Means,
        owner: OwnerId,
        execute: Callable[[Lease, InboxItem], Awaitable[None]],
    ) -> None:
        self._means, self._owner, self._execute = means, owner, execute
        self._actors: dict[ConversationId, _Actor] = {}
        self._tasks: dict[ConversationId, asyncio.Task[None]] = {}
        self._timers: dict[ConversationId, asyncio.TimerHandle] = {}
        self._slots = Slots(means.turns_at_once)
        self._throttle = LogThrottle()
        self._draining = False

    def kick(self, conversation: ConversationId) -> None:
        """There is, or may be, work: start an actor, or tell the one that is at it."""
        if self._draining:
            return
        # Whoever looks now sets it again where it is still needed.
        if timer := self._timers.pop(conversation, None):
            timer.cancel()
        if actor := self._actors.get(conversation):
            actor.more = True
            actor.poked.set()
            return
        actor = self._actors[conversation] = _Actor()
        task = asyncio.create_task(self._live(conversation, actor), name=f"actor:{conversation}")
        self._tasks[conversation] = task

    def kick_in(self, conversation: ConversationId, millis: int) -> None:
        """Kick it when an item is due."""
        if self._draining:
            return
        if timer := self._timers.pop(conversation, None):
            timer.cancel()
        if millis <= 0:
            self.kick(conversation)
            return
        loop = asyncio.get_running_loop()
        self._timers[conversation] = loop.call_later(millis / 1000, self._on_time, conversation)

    def offer(self, conversation: ConversationId) -> None:
        """
        Something was changed by another process.

        Whoever is at it here is told at once. Else it is left to the process that an input came to:
        its front shows the pieces of the answer, and the others need not look in vain. They look
        soon after, in case that one died.
        """
        if conversation in self._actors:
            self.kick(conversation)
            return
        timer = self._timers.get(conversation)
        if timer is None or timer.when() > asyncio.get_running_loop().time() + _LEFT_TO_OTHERS:
            self.kick_in(conversation, round(_LEFT_TO_OTHERS * 1000))

    def _on_time(self, conversation: ConversationId) -> None:
        self._timers.pop(conversation, None)
        self.kick(conversation)

    def busy(self, conversation: ConversationId) -> bool:
        return conversation in self._actors

    async def idle(self) -> None:
        """Wait until nothing is being worked on here."""
        while tasks := list(self._tasks.values()):
            await asyncio.wait(tasks)

    async def drain(self) -> None:
        """
        Stop: running turns are let go for the next owner, and go on there.

        Commands that ask no model are carried out first, within a bound: whoever leaves after
        one need not come back for it, and plugins are told of it by this process.
        """
        self._draining = True
        for timer in self._timers.values():
            timer.cancel()
        tasks = dict(self._tasks)
        for conversation, actor in self._actors.items():
            if actor.asks:
                tasks[conversation].cancel()
            actor.poked.set()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=_COMMANDS)
        if left := [task for task in tasks.values() if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left)

    async def _live(self, conversation: ConversationId, actor: _Actor) -> None:
        try:
            while actor.more:
                actor.more = False
                await self._next(conversation, actor)
        except Exception as error:
            if isinstance(error, NotFound) and await self._is_gone(conversation):
                # Deleted while it was worked on: nothing is left to be done.
                log.info("conversation_gone", conversation=conversation)
            else:
                log.exception("actor_failed", conversation=conversation)
        finally:
            # In one step of the event loop: a kick comes before or finds no actor.
            del self._actors[conversation], self._tasks[conversation]
            self._means.hub.publish(conversation, CHANGED)

    async def _is_gone(self, conversation: ConversationId) -> bool:
        try:
            await self._means.store.read(conversations.get_conversation, conversation)
        except NotFound:
            return True
        except StoreError:
            pass
        return False

    async def _next(self, conversation: ConversationId, actor: _Actor) -> None:
        """Do the next thing, if there is one and no other owner is at it."""
        # Its place in the order is from now, not from when it was found to be due.
        with self._slots.slot(actor.poked) as slot:
            pause = await self._do_next(conversation, actor, slot)
        if pause:
            # What comes in meanwhile is tried at once: somebody waits for an answer.
            actor.poked.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(actor.poked.wait(), pause)

    async def _do_next(self, conversation: ConversationId, actor: _Actor, slot: Slot) -> float:
        """:return: seconds to wait before anything else is done"""
        try:
            begun = await self._begin(conversation, actor, slot)
        except (LeaseHeld, NotFound):
            return 0
        except StoreError as error:
            self._hold_up(conversation, error)
            actor.more = True
            return _PAUSE
        if begun is None or (self._draining and _asks(begun)):
            return 0
        actor.more, actor.asks = True, _asks(begun)
        try:
            await self._do(begun, actor, slot)
        except (StoreFull, StoreDamaged, StoreUnavailable) as error:
            # The model would be asked again, and paid, for what cannot be stored.
            self._hold_up(conversation, error)
            actor.failures += 1
            return min(_PAUSE * 2**actor.failures, _LONGEST_PAUSE)
        finally:
            actor.asks = False
        actor.failures = 0
        self._means.hub.go_on(conversation)
        return 0

    def _hold_up(self, conversation: ConversationId, error: StoreError) -> None:
        # One line for all conversations: a full disk holds every one of them up.
        self._throttle.warn(log, "store_failed", error, conversation=conversation)
        if not isinstance(error, StoreUnavailable):
            # A store that is away is waited for.
            self._means.hub.hold_up(conversation, error)

    async def _begin(
        self, conversation: ConversationId, actor: _Actor, slot: Slot
    ) -> StartedWork | None:
        if not await self._may_begin(conversation, actor, slot):
            return None
        # After an outage the work may be found before the proof of life is back: others would see a
        # dead owner, take what it begins from it at once, and ask the model a second time.
        await self._means.store.register_owner(self._owner)
        # Waited for also in a drain: the lease that it takes is given back after that.
        return await uncancelled(
            self._means.store.write(
                turns.begin_work,
                conversation,
                owner=self._owner,
                turn=self._means.ids.new_turn_id(),
                compose=compose,
                session_ids=self._means.session_ids,
                duration=self._means.lease,
            )
        )

    async def _may_begin(self, conversation: ConversationId, actor: _Actor, slot: Slot) -> bool:
        """
        Whether something is to be done now; for a turn, once there is a slot.

        A look first: beginning takes the lease, which is a write even if there is nothing to do.
        """
        while True:
            # Cleared before the look: what is stored after it is looked at again.
            actor.poked.clear()
            due = await self._means.store.read(
                work.get_due_delay, conversation, me=self._owner, duration=self._means.lease
            )
            if due is None:
                return False
            wait, begins = due
            if wait > 0:
                self.kick_in(conversation, wait)
                return False
            if begins is not StartMode.AT_ONCE:
                if self._draining:
                    return False
                slot.ask(suspect=begins is StartMode.ALONE)
            if begins is StartMode.AT_ONCE or slot.given.is_set():
                return True
            # Until there is a slot, or something else is to be done: a stop needs none.
            await actor.poked.wait()

    async def _do(self, begun: StartedWork, actor: _Actor, slot: Slot) -> None:
        if begun.turn is not None:
            await TurnWork(self._means, begun, actor.poked, slot).run()
        elif begun.item is not None:
            await self._execute(begun.lease, begun.item)


def _asks(begun: StartedWork) -> bool:
    """Return whether a model is asked for it."""
    return begun.turn is not None or (begun.item is not None and begun.item.text == COMPRESS)
