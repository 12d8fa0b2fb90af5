"""Processes of this machine: between their rows in the store and their folders."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clew.agent.known_secrets import redact_part
from clew.config.workspaces import name_place
from clew.features.shell import processes
from clew.features.shell.processes import ProcessEnd, ProcessState
from clew.features.shell.wording import LOST, TAIL, clean_output, format_completion
from clew.plugin.foreign_files import may_read_foreign_text
from clew.sandbox.process_folder import Life, OutputPart, ProcessFolder

if TYPE_CHECKING:
    from clew.config.settings import Settings
    from clew.features.shell.processes import ShellProcess
    from clew.plugin import FeatureContext
    from clew.sandbox.supervisor.order import CommandExit

#: The folder of all processes, in ``CLEW_HOME``.
PROCESS_FOLDER: Final = "processes"
#: Ends that somebody else made: a person, a time limit, another limit.
_STOPPED_BY: Final = ("person", "time", "limit", "memory")
#: Bytes on both sides of a part of an output in which the rest of a secret is looked for.
MARGIN: Final = 8_192
#: Seconds between two looks at a process of another machine.
_REMOTE_PERIOD: Final = 0.5


def get_host(process: ShellProcess) -> str:
    """Return the name of the machine on which a process runs, or ran."""
    return process.host.partition(":")[0]


def find_folder(settings: Settings, process: str) -> ProcessFolder:
    """Return the folder of a process, where it runs on this machine."""
    return ProcessFolder(settings.home.resolve() / PROCESS_FOLDER / process)


def is_here(settings: Settings, process: ShellProcess) -> bool:
    """Return whether a process is one of this machine and this ``CLEW_HOME``."""
    return find_folder(settings, process.id).path.exists() or process.host == name_place(settings)


def read_end(folder: ProcessFolder, *, was_started: bool) -> ProcessEnd | None:
    """Return the end of a process as its folder tells it; ``None`` while it lives."""
    life = folder.look()
    if life is Life.NEW and was_started:  # its folder is gone
        life = Life.GONE
    if life is Life.ENDED and (found := folder.read_exit()) is not None:
        return _describe_exit(folder, found)
    if life is Life.GONE:
        return ProcessEnd(state=ProcessState.LOST, why=LOST, tail=_read_tail(folder))
    return None


def _describe_exit(folder: ProcessFolder, found: CommandExit) -> ProcessEnd:
    stopped = found.by in _STOPPED_BY
    return ProcessEnd(
        state=ProcessState.STOPPED if stopped else ProcessState.EXITED,
        exit_code=found.code,
        signal=found.signal,
        why=found.why,
        notice=found.notice,
        size=found.size,
        tail=_read_tail(folder),
        started_at=found.started,
        ended_at=found.ended,
    )


def _read_tail(folder: ProcessFolder) -> str:
    return decode_part(folder.read_range(None, 4 * TAIL, margin=MARGIN))[-TAIL:]


def decode_part(part: OutputPart) -> str:
    """Return a part of an output as text, without secrets, also those that its edges cut."""
    pieces = (part.before, part.data, part.after)
    return redact_part(*(clean_output(one.decode(errors="replace")) for one in pieces))


async def settle(context: FeatureContext, process: ShellProcess) -> ShellProcess:
    """Store the end of a process of this machine if it has ended; return it as it is now."""
    folder = find_folder(context.settings, process.id)
    end = read_end(folder, was_started=process.state is ProcessState.RUNNING)
    if end is None:
        return process
    if end.state is ProcessState.LOST:
        await folder.end_elsewhere()
    return await context.store.write(
        processes.settle_process,
        process.id,
        end,
        text=format_completion(process, end),
        untrusted=await tells_foreign_text(context, process),
    )


async def tells_foreign_text(context: FeatureContext, process: ShellProcess) -> bool:
    """Return whether the output of a process may hold text of strangers, by what it can read."""
    since = process.started_at or process.created_at
    return await may_read_foreign_text(context.store, process.workspace, process.level, since=since)


async def settle_unstarted(context: FeatureContext, process: ShellProcess) -> None:
    """Store the end of a process that was told to stop before it was started: it never is."""
    folder = find_folder(context.settings, process.id)
    if folder.look() is Life.NEW:
        end = ProcessEnd(state=ProcessState.STOPPED, why=process.stop_reason)
        text = format_completion(process, end)
        await context.store.write(
            processes.settle_process, process.id, end, text=text, untrusted=False
        )


async def wait_for_end(
    context: FeatureContext, process: ShellProcess, *, seconds: float
) -> ShellProcess:
    """Return a process once it has ended, or as it is after some time."""
    if is_here(context.settings, process):
        await find_folder(context.settings, process.id).wait(seconds=seconds)
        return await settle(context, process)
    end = asyncio.get_running_loop().time() + seconds
    while process.state.is_open and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(_REMOTE_PERIOD)
        process = await context.store.read(processes.get_process, process.id)
    return process


async def stop(context: FeatureContext, process: ShellProcess, reason: str) -> ShellProcess:
    """Ask for the end of a process: at once, or when its machine sees it."""
    found = await context.store.write(processes.request_stop, process.id, reason)
    if found.state.is_open and is_here(context.settings, found):
        find_folder(context.settings, found.id).ask_to_stop(found.stop_reason or reason)
    return found


def read_output(settings: Settings, process: ShellProcess, limit: int) -> str:
    """Return the beginning and the end of the output; of another machine, its last characters."""
    folder = find_folder(settings, process.id)
    if folder.path.exists():
        return folder.read_output(limit)
    tail = process.tail or ""
    return f"[it ran on {get_host(process)}, which has the whole output]\n{tail}"
