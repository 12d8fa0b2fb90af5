"""
The process under test: a real engine over a real store, and a front that delivers until told.

The front acts as a platform does: what was not acknowledged is delivered again, what was is
followed until its end. It is forked from a process that has imported everything (``processes``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog
from pydantic_ai import Agent

# Imported before the fork, for the time that it takes.
import clew.store.postgres  # noqa: F401  # pyright: ignore[reportUnusedImport]
from clew import runtime
from clew.agent.failover import RetryPolicy
from clew.agent.loop import AgentLoop
from clew.config import load_settings
from clew.core.double_text import DoubleText
from clew.core.events import Delta, InputCompleted
from clew.core.ids import ConversationId, InboxId
from clew.core.inbox import AcceptResult
from clew.core.route import local_route
from clew.engine.engine import Engine
from clew.errors import StoreUnavailable
from clew.store.opening import open_store
from clew.store.transactions.turns import StartedWork
from tests.killing.killer import Killer, Place, WatchedStore
from tests.killing.plans import Say, parse
from tests.killing.records import (
    Acknowledged,
    Allowed,
    Ended,
    Handed,
    Log,
    Ready,
    Resumed,
    Started,
)
from tests.killing.tools import make_tools

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from pathlib import Path

    from clew.config import Settings
    from clew.core.approval import Approval
    from clew.engine.services import EngineServices
    from clew.store.contract import Store

INSTRUCTIONS = "Do what the message says."


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Orders of a process."""

    folder: Path
    store_url: str
    provider: str
    #: Delivered in this order, once what earlier processes left is done.
    says: Sequence[Say] = ()
    rule: DoubleText = DoubleText.QUEUE
    place: Place | None = None
    #: True if the place also counts while leftovers of earlier processes are processed.
    early: bool = False
    lease: float = 15.0
    #: The model's context window in tokens; without one nothing is compacted by itself.
    window: int | None = None
    #: Leaves what other processes were handed to them.
    own_only: bool = False
    #: Lives on until SIGTERM, although there is nothing to do.
    stays: bool = False
    #: Hands a message over when the one before has ended.
    one_by_one: bool = False
    #: The network namespace that it works in, if it is not ours.
    host: str | None = None

    @property
    def fronts(self) -> Log:
        return Log(self.folder / "fronts.log")

    @property
    def effects(self) -> Log:
        return Log(self.folder / "effects.log")


def main(job: Job) -> None:
    """Run until every message that was handed over has ended, or until SIGTERM."""
    write_to(job.folder)
    job.fronts.add(Started())
    asyncio.run(until_terminated(_run(job)))


def write_to(folder: Path) -> None:
    """Send everything that this process prints to a folder."""
    output = os.open(folder / "output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # Plain tracebacks: those with all variables take seconds, in which a lease runs out.
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
        ]
    )


async def until_terminated(running: Coroutine[None, None, None]) -> None:
    """Run until SIGTERM."""
    work = asyncio.create_task(running)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    orphaned = asyncio.create_task(_end_with(os.getppid()))
    with contextlib.suppress(asyncio.CancelledError):
        await work
    orphaned.cancel()


async def _end_with(parent: int) -> None:
    """End an orphaned process."""
    while os.getppid() == parent:  # noqa: ASYNC110  (nothing tells)
        await asyncio.sleep(0.5)
    os._exit(1)


async def _run(job: Job) -> None:
    killer = Killer(job.place, job.fronts, job.folder)

    def told(result: object) -> None:
        if isinstance(result, StartedWork) and result.resumed and result.turn is not None:
            job.fronts.add(Resumed(turn=result.turn.id))

    inner = await open_store(job.store_url, home=job.folder)
    async with WatchedStore(inner, killer.reach, told) as store:
        means = make_means(job, store, killer)
        engine = Engine(means, role="test", version="0", own_only=job.own_only)
        async with engine:
            job.fronts.add(Ready())
            await Front(job, engine, killer).run()


def make_settings(job: Job) -> Settings:
    flags = {
        "model.name": "openai-chat:fake-model",
        "model.base_url": job.provider,
        "lease.seconds": f"{job.lease:g}",
    }
    if job.window is not None:
        flags["model.context_window"] = str(job.window)
    return load_settings(home=job.folder, flags=flags, environ={})


def make_means(job: Job, store: Store, killer: Killer) -> EngineServices:
    """As the composition root makes them, with our tools and less patience."""
    means = runtime.build_services(make_settings(job), store)
    means.models.retry_policy = RetryPolicy(first_wait=0.05)
    return replace(means, loop=AgentLoop(make_agent(job, killer), max_steps=20))


def make_agent(job: Job, killer: Killer) -> Agent[None, str]:
    """The agent of every process."""
    tools = make_tools(job.effects, killer, job.folder)
    return Agent(instructions=INSTRUCTIONS, tools=tools, retries=3)


class Front:
    """Delivers messages until they are acknowledged, and follows them to their end."""

    def __init__(self, job: Job, engine: Engine, killer: Killer) -> None:
        self._job, self._engine, self._killer = job, engine, killer
        self._conversations: set[ConversationId] = set()

    async def run(self) -> None:
        if self._job.early:
            self._killer.arm()
        left = [] if self._job.own_only else self._left_over()
        approving = asyncio.create_task(self._approve())
        await self._deliver_all(left)
        for say in self._job.says:
            self._job.fronts.add(Handed(key=say.key, text=say.text, rule=self._job.rule.value))
        if not self._job.early:
            self._killer.arm()
        messages = [(say, self._job.rule, None) for say in self._job.says]
        batches = [[message] for message in messages] if self._job.one_by_one else [messages]
        for batch in batches:
            await self._deliver_all(batch)
        if self._job.stays:
            await asyncio.Event().wait()
        approving.cancel()

    def _left_over(self) -> list[tuple[Say, DoubleText, Acknowledged | None]]:
        """Return the inputs that earlier processes got and did not finish."""
        log = self._job.fronts
        ended = {record.key for record in log.of(Ended)}
        acknowledged = {record.key: record for record in log.of(Acknowledged)}
        found: list[tuple[Say, DoubleText, Acknowledged | None]] = []
        for record in log.of(Handed):
            say = parse(record.text)
            if say is not None and record.key not in ended:
                found.append((say, DoubleText(record.rule), acknowledged.get(record.key)))
        return found

    async def _deliver_all(
        self, messages: Sequence[tuple[Say, DoubleText, Acknowledged | None]]
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            for say, rule, before in messages:
                accepted = await self._deliver(say, rule) if before is None else _known(before)
                self._conversations.add(accepted.conversation_id)
                tasks.create_task(self._follow(say, accepted))
            self._killer.reach("front: all delivered")

    async def _deliver(self, say: Say, rule: DoubleText) -> AcceptResult:
        accepted = await self._submit(say, rule)
        self._job.fronts.add(
            Acknowledged(
                key=say.key,
                inbox_id=accepted.inbox_id,
                conversation=accepted.conversation_id,
                duplicate=accepted.duplicate,
            )
        )
        return accepted

    async def _submit(self, say: Say, rule: DoubleText) -> AcceptResult:
        item = replace(
            self._engine.new_input(say.text, double_text=rule), event=("test", "bot", say.key)
        )
        while True:
            try:
                return await self._engine.submit(item, target=local_route(say.conversation))
            except StoreUnavailable:
                await asyncio.sleep(0.1)

    async def _follow(self, say: Say, accepted: AcceptResult) -> None:
        async for event in self._engine.stream_input(accepted):
            if isinstance(event, Delta):
                self._killer.reach("front: delta")
            elif isinstance(event, InputCompleted):
                self._job.fronts.add(
                    Ended(
                        key=say.key,
                        outcome=event.outcome.value,
                        turn=event.turn.id if event.turn else None,
                        turn_outcome=_value(event),
                        text=event.text,
                    )
                )
                self._killer.reach("front: end told")

    async def _approve(self) -> None:
        """The person, who says yes to everything."""
        while True:
            for conversation in list(self._conversations):
                for approval in await self._engine.list_approvals(conversation):
                    self._killer.reach("front: approval seen")
                    await self._allow(approval)
            await asyncio.sleep(0.01)

    async def _allow(self, approval: Approval) -> None:
        self._job.fronts.add(Allowed(what=approval.call_id))
        await self._engine.answer_approval(approval.id, yes=True, by="tester")


def _known(record: Acknowledged) -> AcceptResult:
    return AcceptResult(
        inbox_id=InboxId(record.inbox_id),
        conversation_id=ConversationId(record.conversation),
        duplicate=record.duplicate,
        position=0,
    )


def _value(event: InputCompleted) -> str | None:
    outcome = event.turn.outcome if event.turn else None
    return outcome.value if outcome else None
