"""The process as an owner: proof of life, changes in the store, and due work."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Self

import structlog

from clew.agent.session_environ import expose_session_environ
from clew.background import cancel_and_wait
from clew.config.workspaces import name_place
from clew.core.ids import ConversationId
from clew.engine.conversation_workers import ConversationWorkers
from clew.engine.event_bus import STORE_CHANGED
from clew.engine.file_readers import FileReadingService
from clew.engine.log_throttle import LogThrottle
from clew.engine.maintenance import run_maintenance
from clew.engine.queued_commands import run_queued_command
from clew.engine.workspace_pruning import prune_workspace_writes
from clew.errors import StoreError
from clew.store import maintenance
from clew.store.contract import Topics
from clew.store.transactions import approvals, due_work, locks, owners
from clew.store.transactions.deliveries import DELIVERY_TOPIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from clew.core.ids import OwnerId
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.engine.services import EngineServices

log = structlog.get_logger(__name__)

#: Seconds between polls for unannounced work: turns of dead owners, overdue questions.
POLL_INTERVAL = 1.0
#: Seconds at stop in which plugins receive the remaining facts.
HOOK_DRAIN_TIMEOUT = 5.0
MAINTENANCE_INTERVAL = timedelta(minutes=1)
#: Rounds of it between two looks at files of workspaces.
_PRUNING = 60
_FIRST_PRUNING = 5
#: Slices of the search index that one poll may write.
_INDEX_SLICES = 4


class EngineProcess:
    """
    This process as an owner in the store.

    Inside ``async with`` it is an owner; leaving it releases running turns to the next one.
    With ``own_only`` it works only on conversations that it was woken for.
    """

    def __init__(self, means: EngineServices, *, role: str, version: str, own_only: bool) -> None:
        self._services, self._store, self._event_bus = means, means.store, means.event_bus
        self._role, self._version = role, version
        self.id: OwnerId = means.ids.new_owner_id()
        self._adopted: set[ConversationId] | None = set() if own_only else None
        self._workers = ConversationWorkers(means, self.id, self._run_command)
        self._file_reading = FileReadingService(
            means.file_readers, means.feature_context, self.id, self._is_ours
        )
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
            self._watch_store,
            self._poll_periodically,
            self._maintain_periodically,
            self._services.hooks.run,
            self._services.after_turn.run,
            self._file_reading.run,
        ):
            self._tasks.append(asyncio.create_task(_run_forever(loop), name=loop.__name__))
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._stack:
            await self._workers.drain()
            await self._services.hooks.drain_queue(HOOK_DRAIN_TIMEOUT)
            self._services.hooks.plugins.close()
            await self._services.tracing.close()
            await cancel_and_wait(*self._tasks)
            with suppress(StoreError):
                await self._store.write(owners.mark_owner_ended, self.id)

    def wake(self, conversation: ConversationId) -> None:
        """Work at once on a conversation for which something was stored here."""
        if self._adopted is not None:
            self._adopted.add(conversation)
        self._workers.wake(conversation)

    async def wait_until_idle(self) -> None:
        """Wait until no conversation is worked on here, and that hooks and work after turns ran."""
        await self._workers.wait_until_idle()
        await self._services.hooks.drain_queue(HOOK_DRAIN_TIMEOUT)
        await self._services.after_turn.wait_until_idle()

    async def _run_command(self, lease: Lease, item: InboxItem) -> None:
        await run_queued_command(self._services, lease, item)

    async def _watch_store(self) -> None:
        """Watch the store for changes by any process, and start workers."""
        async for topics in self._store.watch_changes():
            if topics is None:
                self._event_bus.publish_to_all(STORE_CHANGED)
                await self._scan_due_work()
                continue
            here = topics.here if isinstance(topics, Topics) else topics
            for topic in topics:
                if topic.startswith(DELIVERY_TOPIC):
                    continue  # a delivery, for the channels
                conversation = ConversationId(topic)
                self._event_bus.publish(conversation, STORE_CHANGED)
                if self._is_ours(conversation):
                    (self._workers.wake if topic in here else self._workers.wake_deferred)(
                        conversation
                    )

    async def _poll_periodically(self) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL)
            await self._scan_due_work()
            if await self._store.read(approvals.has_expired_approvals):
                await self._store.write(approvals.expire_approvals)
            await maintenance.update_index(self._store, slices=_INDEX_SLICES)

    async def _maintain_periodically(self) -> None:
        """Run the maintenance once a minute, one process at a time."""
        place, looks = name_place(self._services.feature_context.settings), 0
        while self._adopted is None:
            if looks % _PRUNING == _FIRST_PRUNING:
                # Of each machine: the files are there.
                await prune_workspace_writes(self._store, place)
            looks += 1
            holder = await self._store.write(
                locks.acquire_process_lock,
                "maintenance",
                self.id,
                duration=2 * MAINTENANCE_INTERVAL,
            )
            if holder is None:
                await self._services.hooks.emit_missed_ends()
                await run_maintenance(self._store, self._services.reset_policy)
            await asyncio.sleep(MAINTENANCE_INTERVAL.total_seconds())
        await asyncio.Event().wait()

    async def _scan_due_work(self) -> None:
        due = await self._store.read(
            due_work.find_due_delays, me=self.id, duration=self._services.lease_duration
        )
        for conversation, millis in due.items():
            if self._is_ours(conversation):
                self._workers.wake_in(conversation, millis)

    def _is_ours(self, conversation: ConversationId) -> bool:
        return self._adopted is None or conversation in self._adopted


async def _run_forever(loop: Callable[[], Awaitable[None]]) -> None:
    """
    Run a loop for as long as this owner lives, and restart it after a failure.

    A repeated store failure is logged once a minute.
    """
    throttle = LogThrottle()
    while True:
        try:
            await loop()
        except StoreError as error:
            throttle.warn_store_failure(log, "store_failed", error, task=loop.__name__)
        except Exception:  # a bug of ours: the task is run again
            log.exception("task_failed", task=loop.__name__)
        await asyncio.sleep(POLL_INTERVAL)
