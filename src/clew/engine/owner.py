"""A process in the store: it proves that it lives, sees what changes, works on what is due."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Self

import structlog

from clew.agent.environment import expose_session_environ
from clew.core.ids import ConversationId
from clew.engine.actors import Actors
from clew.engine.commands import execute
from clew.engine.hub import CHANGED
from clew.engine.log_throttle import LogThrottle
from clew.engine.maintenance import maintain
from clew.errors import StoreError
from clew.store import upkeep
from clew.store.contract import Topics
from clew.store.transactions import approvals, locks, owners, work
from clew.store.transactions.deliveries import DELIVERY_TOPIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from clew.core.ids import OwnerId
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.engine.turns import Means

log = structlog.get_logger(__name__)

#: Seconds between looks for work that nobody announced: turns of dead owners, overdue questions.
BEAT = 1.0
#: Seconds that plugins have at stop to be told what happened.
FACTS_PATIENCE = 5.0
MAINTENANCE = timedelta(minutes=1)
#: Slices of the search index that one beat may write.
_SLICES = 4


class Owner:
    """
    Inside ``async with`` this process is an owner; leaving it lets running turns go for the next.

    With ``own_only`` it works only on conversations that were adopted.
    """

    def __init__(self, means: Means, *, role: str, version: str, own_only: bool) -> None:
        self._means, self._store, self._hub = means, means.store, means.hub
        self._role, self._version = role, version
        self.id: OwnerId = means.ids.new_owner_id()
        self._own: set[ConversationId] | None = set() if own_only else None
        self._actors = Actors(means, self.id, self._execute)
        self._tasks: list[asyncio.Task[None]] = []
        self._stack = ExitStack()

    async def __aenter__(self) -> Self:
        await self._store.register_owner(self.id)
        await self._store.write(
            owners.register_owner,
            self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            role=self._role,
            version=self._version,
        )
        self._stack.enter_context(expose_session_environ())
        for loop in (
            self._watch,
            self._beat,
            self._maintain,
            self._means.facts.run,
            self._means.titles.run,
        ):
            self._tasks.append(asyncio.create_task(_kept(loop), name=loop.__name__))
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._stack:
            await self._actors.drain()
            await self._means.facts.drain(FACTS_PATIENCE)
            self._means.facts.plugins.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
            with suppress(StoreError):
                await self._store.write(owners.mark_owner_ended, self.id)

    def kick(self, conversation: ConversationId) -> None:
        """Something was stored for this conversation here: work on it at once."""
        if self._own is not None:
            self._own.add(conversation)
        self._actors.kick(conversation)

    async def idle(self) -> None:
        """Wait until nothing is being worked on here, plugins were told and titles given."""
        await self._actors.idle()
        await self._means.facts.drain(FACTS_PATIENCE)
        await self._means.titles.idle()

    async def _execute(self, lease: Lease, item: InboxItem) -> None:
        await execute(self._means, lease, item)

    async def _watch(self) -> None:
        """See what changes in the store, whoever changed it, and start actors on work."""
        async for topics in self._store.watch_changes():
            if topics is None:
                self._hub.publish_to_all(CHANGED)
                await self._scan()
                continue
            here = topics.here if isinstance(topics, Topics) else topics
            for topic in topics:
                if topic.startswith(DELIVERY_TOPIC):
                    continue  # for the channels
                conversation = ConversationId(topic)
                self._hub.publish(conversation, CHANGED)
                if self._mine(conversation):
                    (self._actors.kick if topic in here else self._actors.offer)(conversation)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            await self._scan()
            if await self._store.read(approvals.has_expired_approvals):
                await self._store.write(approvals.expire_approvals)
            await upkeep.update_index(self._store, slices=_SLICES)

    async def _maintain(self) -> None:
        """Once a minute, one process at a time: end what is over, remove what was deleted."""
        while self._own is None:
            holder = await self._store.write(
                locks.acquire_process_lock, "maintenance", self.id, duration=2 * MAINTENANCE
            )
            if holder is None:
                await self._means.facts.catch_up()
                await maintain(self._store, self._means.reset)
            await asyncio.sleep(MAINTENANCE.total_seconds())
        await asyncio.Event().wait()

    async def _scan(self) -> None:
        due = await self._store.read(work.find_due_delays, me=self.id, duration=self._means.lease)
        for conversation, millis in due.items():
            if self._mine(conversation):
                self._actors.kick_in(conversation, millis)

    def _mine(self, conversation: ConversationId) -> bool:
        return self._own is None or conversation in self._own


async def _kept(loop: Callable[[], Awaitable[None]]) -> None:
    """
    Run a loop for as long as this owner lives: one that fails is begun again.

    A store that fails in the same way again and again is logged once a minute.
    """
    throttle = LogThrottle()
    while True:
        try:
            await loop()
        except StoreError as error:
            throttle.warn(log, "store_failed", error, task=loop.__name__)
        except Exception:
            log.exception("task_failed", task=loop.__name__)
        await asyncio.sleep(BEAT)
