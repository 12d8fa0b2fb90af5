"""What jobs look at: commands, files and pages; the model is asked only about something new."""

from __future__ import annotations

import difflib
import hashlib
from typing import TYPE_CHECKING, Final

import structlog

from clew.agent.known_secrets import redact_secrets
from clew.config.workspaces import make_sandbox_policy, name_place
from clew.core.escapes import strip_sequences
from clew.core.text import truncate_middle
from clew.core.tool_facts import CONFINED_LEVELS
from clew.errors import ClewError, UsageError
from clew.features.schedule import firing, runs
from clew.features.schedule.jobs import lock_job, make_fire_id
from clew.features.schedule.planning import FireState
from clew.features.schedule.runs import RunState
from clew.features.schedule.wording import format_task
from clew.plugin.foreign_files import ProgramWrites
from clew.record import Record
from clew.sandbox.runner import run_command
from clew.sandbox.selection import choose_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.ids import SessionIdFactory
    from clew.features.schedule.firing import CommandRun, FiringRules
    from clew.features.schedule.jobs import ScheduledJob
    from clew.plugin import FeatureContext
    from clew.plugin.declarations import WatchSource
    from clew.store.contract import Tx

    FindSource = Callable[[str], WatchSource | None]

log = structlog.get_logger(__name__)

#: Characters of an output that the model reads, and of the changes in it.
_MAX_OUTPUT, _MAX_CHANGES = 20_000, 10_000
#: The command is never a part of this text.
_SHELL: Final = 'if command -v bash >/dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi'


class PolledOutput(Record):
    """Output of a command, or the present text of a file or page."""

    text: str
    #: How the command ended.
    ending: str | None = None
    failed: bool = False
    untrusted: bool = False
    #: Tells outputs apart.
    digest: str

    @property
    def told(self) -> str:
        """Return the output as the model reads it."""
        return self.text if self.ending is None else f"{self.text}\n[{self.ending}]".strip()


async def run_job_command(
    context: FeatureContext, command: CommandRun, rules: FiringRules, find_source: FindSource
) -> None:
    """
    Run the command of a job, or read what it watches, and store how that ended.

    The model is asked, in the same commit, only if there is something new.
    """
    try:
        name = make_fire_id(command.job.id, command.slot)
        output = await _poll(context, command.job, name, find_source)
        await context.store.write(_store_output, command, output, rules.session_ids)
    except Exception as error:  # whatever it is, later slots must not wait for it
        if not isinstance(error, ClewError):
            log.exception("job_command_failed", job=command.job.id)
        failed = RunState(state=FireState.FAILED, reason=str(error) or type(error).__name__)
        await context.store.write(_end_run, command, failed)


async def _poll(
    context: FeatureContext, job: ScheduledJob, name: str, find_source: FindSource
) -> PolledOutput:
    if job.command is not None:
        return await _run(context, job, job.command, name)
    source = find_source(job.kind.value)
    if source is None or job.watch is None:
        raise UsageError(f"nothing here can watch a {job.kind.value}: its feature is disabled")
    found = await source.read(context, job.scope, job.watch)
    text = redact_secrets(strip_sequences(found.text)).strip()
    return PolledOutput(
        text=truncate_middle(text, _MAX_OUTPUT), untrusted=found.untrusted, digest=_digest(0, text)
    )


async def _run(context: FeatureContext, job: ScheduledJob, command: str, name: str) -> PolledOutput:
    policy = make_sandbox_policy(context.settings)
    if job.level not in (None, policy.level) and policy.level not in CONFINED_LEVELS:
        raise UsageError(
            f"its command was allowed at the sandbox level {job.level}, and the level is "
            f"{policy.level} now: schedule it again"
        )
    sandbox = (await choose_sandbox(policy)).require_sandbox()
    argv = ["/bin/sh", "-c", _SHELL, "sh", command]
    writes = ProgramWrites(
        context.store,
        name,
        workspace=str(policy.workspace_of(job.scope).root),
        place=name_place(context.settings),
        level=policy.level,
    )
    async with writes.following(untrusted=job.untrusted):
        done = await run_command(argv, policy.make_request(job.scope), sandbox)
    text = redact_secrets(strip_sequences(done.output)).strip()[-_MAX_OUTPUT:]
    return PolledOutput(
        text=text,
        ending=done.ending,
        failed=bool(done.exit_code),
        untrusted=writes.untrusted,
        digest=_digest(done.exit_code, text),
    )


def _digest(exit_code: int, text: str) -> str:
    return hashlib.sha256(f"{exit_code}\n{text}".encode()).hexdigest()


def _end_run(t: Tx, command: CommandRun, found: RunState) -> None:
    job = lock_job(t, command.job.id)
    if job is not None:
        runs.end_run(t, job, command.slot, found)


def _store_output(
    t: Tx, command: CommandRun, output: PolledOutput, session_ids: SessionIdFactory
) -> None:
    job = lock_job(t, command.job.id)
    if job is None or not runs.is_started(t, job, command.slot):
        return
    if output.digest == job.output:
        found = RunState(state=FireState.DONE, reason="unchanged")
        if output.failed:
            found = RunState(state=FireState.FAILED, reason=output.told)
        runs.end_run(t, job, command.slot, found)
        return
    _remember(t, job, output)
    if job.watch is not None and job.output is None:
        first = RunState(state=FireState.DONE, reason="first")
        runs.end_run(t, job, command.slot, first)
        return
    news = output.told if job.watch is None else format_news(job.seen or "", output.text)
    firing.start_turn(
        t,
        job,
        command.slot,
        session_ids=session_ids,
        text=format_task(job, command.slot, t.now, output=news),
        untrusted=output.untrusted,
    )


def _remember(t: Tx, job: ScheduledJob, output: PolledOutput) -> None:
    t.execute(
        """
        UPDATE schedule_job
        SET output = $2, seen = $3, untrusted = CASE WHEN $4 = 1 THEN 1 ELSE untrusted END
        WHERE id = $1
        """,
        job.id,
        output.digest,
        None if job.watch is None else output.text,
        # What it says now is repeated once it has changed.
        int(output.untrusted and job.watch is not None),
    )


def format_news(before: str, after: str) -> str:
    """Return what has changed in a text, line by line, and the text as it is now."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    changes = "\n".join(line for line in lines if not line.startswith(("---", "+++")))
    return f"{truncate_middle(changes, _MAX_CHANGES)}\n\nIt says now:\n{after}"
