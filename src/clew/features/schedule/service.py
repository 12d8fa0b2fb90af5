"""The loop that fires jobs: any gateway may, and each does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from clew.background import cancel_and_wait
from clew.core.ids import new_session_id
from clew.errors import StoreError
from clew.features.schedule import access, commands, due, firing, jobs, runs
from clew.features.schedule.settings import make_quiet_hours

if TYPE_CHECKING:
    from clew.features.schedule.commands import FindSource
    from clew.features.schedule.due import DueJobs
    from clew.features.schedule.firing import CommandRun, FiringRules
    from clew.features.schedule.settings import ScheduleSettings
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

#: Seconds after which it is looked at jobs again, whatever is known: others may have changed
#: them, and the clock may have been set.
LONGEST_SLEEP: Final = 2.0
#: Jobs, and runs that have ended, of one look.
_BATCH: Final = 50


class Scheduler:
    """The firing of jobs by one process."""

    def __init__(
        self,
        context: FeatureContext,
        settings: ScheduleSettings,
        find_source: FindSource = lambda _: None,
    ) -> None:
        self._find_source = find_source
        self._context, self._store = context, context.store
        self._rules = firing.FiringRules(
            quiet_hours=make_quiet_hours(settings, context.settings),
            tokens=context.settings.agent.unattended_tokens,
            session_ids=new_session_id,
            owner=context.ids.new_owner_id(),
            policies=access.make_policies(context.settings),
        )
        self._commands: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Fire jobs for ever."""
        try:
            await self.pause_excluded()
            while True:
                work = await self._store.read(due.find_due_jobs, limit=_BATCH)
                await self._settle(work)
                await self._fire(work)
                await asyncio.sleep(0 if work else min(LONGEST_SLEEP, work.wait))
        finally:
            await cancel_and_wait(*self._commands)

    async def pause_excluded(self) -> None:
        """Pause the jobs of people whom the settings no longer admit."""
        policies = self._rules.policies
        for job in await self._store.read(access.list_excluded_jobs, policies):
            await self._store.write(access.pause_if_excluded, job, policies)

    async def fire_due(self) -> int:
        """Fire the jobs that are due, and return how many there were."""
        work = await self._store.read(due.find_due_jobs, limit=_BATCH)
        await self._fire(work)
        return len(work.jobs)

    async def settle_runs(self) -> None:
        """Record the end of runs, and tell of failures."""
        await self._settle(await self._store.read(due.find_due_jobs, limit=_BATCH))

    async def _settle(self, work: DueJobs) -> None:
        for job, slot in work.ended:
            await self._store.write(runs.settle_slot, job, slot)

    async def _fire(self, work: DueJobs) -> None:
        if work.jobs:
            # A command belongs to a process that is alive.
            await self._store.register_owner(self._rules.owner)
        async with asyncio.TaskGroup() as firings:
            for job in work.jobs:
                firings.create_task(self._fire_job(job), name=f"fire:{job}")

    async def _fire_job(self, job: str) -> None:
        try:
            command = await self._store.write(firing.fire_job, job, self._rules)
        except StoreError:
            raise
        except Exception as error:  # one job must not keep others from firing
            log.exception("job_not_fired", job=job)
            await self._store.write(_pause_broken, job, str(error) or type(error).__name__)
        else:
            if command is not None:
                self._start(command, self._rules)

    def _start(self, command: CommandRun, rules: FiringRules) -> None:
        task = asyncio.create_task(
            commands.run_job_command(self._context, command, rules, self._find_source),
            name=f"job:{command.job.id}",
        )
        self._commands.add(task)
        task.add_done_callback(self._commands.discard)

    async def wait_for_commands(self) -> None:
        """Wait until no command runs here."""
        while self._commands:
            await asyncio.wait(self._commands)


def _pause_broken(t: Tx, job: str, error: str) -> None:
    found = jobs.lock_job(t, job)
    if found is not None:
        jobs.pause_job(t, found, reason=error)
