"""A gateway with jobs: an engine over a store whose clock is set by hand."""

from __future__ import annotations

import itertools
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from clew.agent.models import close_models_on_exit
from clew.core.channel_events import load_message
from clew.core.route import Route
from clew.core.scope import Scope, scope_of
from clew.engine.engine import Engine
from clew.features import schedule
from clew.features.schedule.jobs import JobFire, ScheduledJob, get_job, list_fires
from clew.features.schedule.making import JobOwner, JobRequest, create_job
from clew.features.schedule.service import Scheduler
from clew.features.schedule.settings import ScheduleSettings
from clew.plugin.registry import Features, Registry
from clew.runtime import build_services
from clew.store.checks.registry import find_all
from clew.store.opening import open_store
from clew.testing import FakeProvider, Text
from tests.integration.api_server import settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from clew.config.settings import Settings
    from clew.core.ids import ConversationId
    from clew.plugin.registry import Register
    from clew.store.contract import Store, Tx
    from clew.testing import ProviderRequest, Reply

CHAT = Route(platform="telegram", kind="dm", chat="42")
START = datetime(2026, 11, 29, 12, 0, 30, tzinfo=UTC)


class HandClock:
    """A clock that stands still until it is set."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    def move(self, **by: float) -> None:
        self._now += timedelta(**by)


@dataclass(kw_only=True)
class JobWorld:
    """Everything that a test of jobs needs."""

    engine: Engine
    provider: FakeProvider
    store: Store
    clock: HandClock
    scheduler: Scheduler
    settings: Settings
    names: itertools.count[int] = field(default_factory=itertools.count)

    async def say(self, text: str, route: Route = CHAT) -> ConversationId:
        accepted = await self.engine.submit(text, target=route)
        await self.engine.wait_for_input(accepted)
        return accepted.conversation_id

    async def add(self, *, owner: JobOwner | None = None, **request: Any) -> ScheduledJob:
        """Store a job; by default one of the chat."""
        named: dict[str, Any] = {"task": "look after the garden", "zone": "UTC", **request}
        wanted = JobRequest(**named)
        return await self.store.write(
            create_job, f"job_{next(self.names)}", wanted, owner or owner_of(None)
        )

    async def step(self, **by: float) -> None:
        """Move the clock, fire what is due, and wait for the end of the runs."""
        self.clock.move(**by)
        while await self.scheduler.fire_due():
            pass
        await self.settle()

    async def settle(self) -> None:
        """Wait until nothing is open, and settle the runs."""
        await self.scheduler.wait_for_commands()

        async def is_done() -> bool:
            return await self.store.read(_count_open) == 0

        await wait_until(is_done)
        await self.scheduler.settle_runs()
        found = await self.store.read(find_all)
        assert not found, found

    async def fires(self, job: ScheduledJob) -> list[JobFire]:
        """All slots of a job, the oldest first."""
        return (await self.store.read(list_fires, job.id, limit=10_000))[::-1]

    async def states(self, job: ScheduledJob) -> list[str]:
        return [
            fire.state.value + (f": {fire.reason}" if fire.reason else "")
            for fire in await self.fires(job)
        ]

    async def get(self, job: ScheduledJob) -> ScheduledJob:
        return await self.store.read(get_job, job.id)

    async def delivered(self) -> list[tuple[str, str]]:
        """Kind and text of each delivery."""
        return await self.store.read(_read_deliveries)


def owner_of(conversation: ConversationId | None, route: Route = CHAT, **more: Any) -> JobOwner:
    return JobOwner(scope=scope_of(route), route=route.key, conversation=conversation, **more)


LOCAL_OWNER = JobOwner(scope=Scope("local"))


def _count_open(t: Tx) -> int:
    return t.fetch_value(
        "SELECT (SELECT count(*) FROM inbox WHERE outcome IS NULL)"
        " + (SELECT count(*) FROM turn WHERE state = 'running')"
    )


def _read_deliveries(t: Tx) -> list[tuple[str, str]]:
    rows = t.fetch_all("SELECT kind, body FROM delivery ORDER BY n")
    return [(kind, load_message(body).text) for kind, body in rows]


@asynccontextmanager
async def open_jobs(
    home: Path,
    url: str,
    answer: Callable[[ProviderRequest], Reply] = lambda _: Text("watered"),
    *registers: Register,
    settings: ScheduleSettings | None = None,
    tokens: int = 500_000,
    clock: HandClock | None = None,
) -> AsyncGenerator[JobWorld]:
    """Open a gateway that fires jobs only when a test says so."""
    clock = clock or HandClock()
    features = Features()
    features.register("schedule", schedule.register)
    for number, register in enumerate(registers):
        own = register.__module__.partition("clew.features.")[2]
        features.register(own or f"tested{number}", register)
    with FakeProvider(answer) as provider:
        async with (
            close_models_on_exit(),
            await open_store(url, home=home, clock=clock, features=features.schemas) as store,
        ):
            made = settings_for(home, provider=provider)
            made = replace(made, agent=replace(made.agent, unattended_tokens=tokens))
            features.bind_settings(made)
            services = build_services(made, store, features)
            async with Engine(services, role="test", version="0") as engine:
                yield JobWorld(
                    engine=engine,
                    provider=provider,
                    store=store,
                    clock=clock,
                    settings=made,
                    scheduler=Scheduler(
                        services.feature_context,
                        settings or ScheduleSettings(),
                        Registry(features, "tests", is_plugin=False).find_watch_source,
                    ),
                )
