"""A gateway that only fires jobs, by a clock in a file."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.ids import ConversationId, IdGenerator, new_session_id
from clew.core.scope import scope_of
from clew.features import schedule
from clew.features.schedule.jobs import JobKind
from clew.features.schedule.making import JobOwner, JobRequest, create_job
from clew.features.schedule.planning import CatchUp
from clew.features.schedule.service import Scheduler
from clew.features.schedule.settings import ScheduleSettings
from clew.plugin.registry import Features
from clew.runtime import make_feature_context
from clew.store.opening import open_store
from clew.store.transactions.conversations import open_conversation
from tests.features.job_world import CHAT, START
from tests.integration.api_server import settings_for

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from clew.store.contract import Store


#: Seconds between two looks at the jobs.
_PAUSE = 0.02


class FileClock:
    """The clock of all gateways: milliseconds in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> datetime:
        return from_millis(int(self._path.read_text(encoding="ascii")))

    def monotonic(self) -> float:
        return time.monotonic()


async def open_with_jobs(url: str, home: Path, clock: Path) -> Store:
    """Open the store with the tables of jobs."""
    features = Features()
    features.register("schedule", schedule.register)
    return await open_store(url, home=home, clock=FileClock(clock), features=features.schemas)


def main(url: str, home: Path, clock: Path) -> None:
    """Run a gateway in a process of its own."""
    asyncio.run(run_gateway(url, home, clock))


async def run_gateway(url: str, home: Path, clock: Path) -> None:
    """Fire jobs until the end of the process."""
    async with await open_with_jobs(url, home, clock) as store:
        ids = IdGenerator(lambda: time.time_ns() // 1_000_000)
        context = make_feature_context(settings_for(home), store, ids)
        scheduler = Scheduler(context, ScheduleSettings())
        while True:
            if not await scheduler.fire_due():
                await asyncio.sleep(_PAUSE)


async def prepare(url: str, home: Path, clock: Path, jobs: int) -> None:
    """Make jobs of each minute: messages, and turns, whose inputs nobody works on."""
    async with await open_with_jobs(url, home, clock) as store:
        conversation = ConversationId("cnv_home")
        scope = scope_of(CHAT)
        await store.write(open_conversation, conversation, scope=scope, session_ids=new_session_id)
        owner = JobOwner(scope=scope, route=CHAT.key, conversation=conversation)
        for number in range(jobs):
            kind = JobKind.MESSAGE if number % 2 else JobKind.TURN
            request = JobRequest(
                task=f"job {number}", every="1m", zone="UTC", kind=kind, catch_up=CatchUp.LATEST
            )
            await store.write(create_job, f"job_{number:03}", request, owner)


def set_clock(path: Path, minutes: float) -> None:
    """Set the clock of all gateways, in one step."""
    moment = START + timedelta(minutes=minutes)
    new = path.with_suffix(".new")
    new.write_text(str(int(moment.timestamp() * 1000)), encoding="ascii")
    new.replace(path)
