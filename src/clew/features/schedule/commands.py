"""Commands of jobs: run in the sandbox, and told to the model only if there is something new."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from clew.agent.known_secrets import redact_secrets
from clew.config.workspaces import make_sandbox_policy
from clew.core.escapes import strip_sequences
from clew.errors import ClewError
from clew.features.schedule import firing, runs
from clew.features.schedule.jobs import lock_job
from clew.features.schedule.planning import FireState
from clew.features.schedule.runs import RunState
from clew.features.schedule.wording import format_task
from clew.sandbox.runner import run_command
from clew.sandbox.selection import choose_sandbox

if TYPE_CHECKING:
    from clew.core.ids import SessionIdFactory
    from clew.features.schedule.firing import CommandRun, FiringRules
    from clew.features.schedule.jobs import ScheduledJob
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

#: Characters of an output that the model reads: its end.
_MAX_OUTPUT: Final = 20_000
#: The command is never a part of this text.
_SHELL: Final = 'if command -v bash >/dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi'


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandOutput:
    """Output and end of a command."""

    text: str
    exit_code: int
    ending: str

    @property
    def digest(self) -> str:
        """Return the digest that tells outputs apart."""
        return hashlib.sha256(f"{self.exit_code}\n{self.text}".encode()).hexdigest()


async def run_job_command(context: FeatureContext, command: CommandRun, rules: FiringRules) -> None:
    """Run the command of a job, and store how it ended; the model is asked in the same commit."""
    try:
        output = await _run(context, command.job)
        await context.store.write(_store_output, command, output, rules.session_ids)
    except Exception as error:  # whatever it is, later slots must not wait for it
        if not isinstance(error, ClewError):
            log.exception("job_command_failed", job=command.job.id)
        failed = RunState(state=FireState.FAILED, reason=str(error) or type(error).__name__)
        await context.store.write(_end_run, command, failed)


async def _run(context: FeatureContext, job: ScheduledJob) -> CommandOutput:
    assert job.command is not None
    policy = make_sandbox_policy(context.settings)
    sandbox = (await choose_sandbox(policy)).require_sandbox()
    argv = ["/bin/sh", "-c", _SHELL, "sh", job.command]
    done = await run_command(argv, policy.make_request(job.scope), sandbox)
    text = redact_secrets(strip_sequences(done.output)).strip()[-_MAX_OUTPUT:]
    return CommandOutput(text=text, exit_code=done.exit_code, ending=done.ending)


def _end_run(t: Tx, command: CommandRun, found: RunState) -> None:
    job = lock_job(t, command.job.id)
    if job is not None:
        runs.end_run(t, job, command.slot, found)


def _store_output(
    t: Tx, command: CommandRun, output: CommandOutput, session_ids: SessionIdFactory
) -> None:
    job = lock_job(t, command.job.id)
    if job is None or not runs.is_started(t, job, command.slot):
        return
    if output.digest == job.output:
        found = RunState(state=FireState.DONE, reason="unchanged")
        if output.exit_code:
            found = RunState(state=FireState.FAILED, reason=_describe(output))
        runs.end_run(t, job, command.slot, found)
        return
    t.execute("UPDATE schedule_job SET output = $2 WHERE id = $1", job.id, output.digest)
    text = format_task(job, command.slot, t.now, output=_describe(output))
    firing.start_turn(t, job, command.slot, session_ids=session_ids, text=text)


def _describe(output: CommandOutput) -> str:
    return f"{output.text}\n[{output.ending}]".strip()
