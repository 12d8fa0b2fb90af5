"""Running of the model's commands: each is a process that outlives the gateway."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from clew.background import shield_until_done
from clew.config.workspaces import name_place
from clew.errors import StoreError
from clew.features.shell import processes, supervision
from clew.features.shell.processes import ProcessState, ShellProcess
from clew.features.shell.turn_sandbox import find_sandbox
from clew.features.shell.wording import format_result, format_unfinished
from clew.plugin import get_turn_context, keep_permit
from clew.record import Record
from clew.sandbox.errors import SandboxError
from clew.sandbox.process_folder import make_order
from clew.sandbox.request import find_python
from clew.store.transactions import turn_queries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path
    from typing import TypeAlias

    from clew.plugin import TurnContext
    from clew.sandbox.request import SandboxPolicy
    from clew.sandbox.supervisor.order import SupervisorOrder

    FindReadable: TypeAlias = Callable[[TurnContext], Awaitable[Sequence[Path]]]

#: Bytes of a command or a script: the kernel refuses arguments of more than 128 KB.
_LONGEST: Final = 100_000
#: Runs the command with bash, where there is one. It is never a part of this text.
_SHELL: Final = 'if command -v bash >/dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi'
#: Seconds within which a command that is told to stop has ended.
STOP_PATIENCE: Final = 8.0
_PERSON: Final = "stopped: the turn was stopped"


async def _find_nothing(_: TurnContext) -> Sequence[Path]:
    return ()


class ShellCall(Record):
    """A call of the model that runs a command."""

    argv: Sequence[str]
    #: As the model wrote it.
    text: str
    background: bool
    #: Lower limits than those of the settings; 0: none.
    seconds: int
    #: Seconds that the call waits.
    foreground: float
    is_python: bool = False
    #: Returns the folders that it may read beside the workspace.
    find_readable: FindReadable = _find_nothing


async def run_shell(
    command: str,
    *,
    seconds: int,
    background: bool,
    foreground: float,
    find_readable: FindReadable = _find_nothing,
) -> str:
    """
    Run a command line in the workspace; return its output, and how it ended.

    :raises SandboxError: if it cannot be run
    """
    check_argument("command", command)
    return await _run(
        ShellCall(
            argv=["/bin/sh", "-c", _SHELL, "sh", command],
            text=command,
            background=background,
            seconds=seconds,
            foreground=foreground,
            find_readable=find_readable,
        )
    )


async def run_python(
    code: str,
    *,
    seconds: int,
    foreground: float,
    find_readable: FindReadable = _find_nothing,
) -> str:
    """
    Run a script in the workspace; return its output, and how it ended.

    :raises SandboxError: if it cannot be run
    """
    check_argument("code", code)
    return await _run(
        ShellCall(
            argv=["-I", "-u", "-X", "utf8", "-c", code],
            text=code,
            background=False,
            seconds=seconds,
            foreground=foreground,
            is_python=True,
            find_readable=find_readable,
        )
    )


def check_argument(name: str, text: str) -> None:
    """
    Reject what no process can be given.

    :raises SandboxError: saying what to do instead
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise SandboxError(
            f"{name} holds a character that is half of a pair: leave it out"
        ) from None
    if not text.strip():
        raise SandboxError(f"{name} is empty")
    if "\0" in text:
        raise SandboxError(f"{name} holds the character NUL: leave it out")
    if size > _LONGEST:
        raise SandboxError(
            f"{name} has {size:,} bytes, and {_LONGEST:,} are allowed: write it to a file, "
            "and run that"
        )


async def _run(call: ShellCall) -> str:
    context = get_turn_context()
    if context is None or context.call_key is None:
        raise SandboxError("commands run in turns only")
    process = await _ask(context, call)
    try:
        process = await _start(context, process, call)
        return await _wait(context, process, call)
    except asyncio.CancelledError:
        await shield_until_done(_stop_with_turn(context, process))
        raise


async def _ask(context: TurnContext, call: ShellCall) -> ShellProcess:
    """Store the process of the call, or find the one that was stored when it ran before."""
    assert context.call_key is not None
    policy = (await find_sandbox(context)).policy
    asked = ShellProcess(
        id=processes.make_process_id(context.call_key),
        conversation=context.conversation,
        turn=context.turn,
        scope=context.scope,
        command=call.text,
        workspace=str(policy.workspace_of(context.scope).root),
        level=policy.level,
        host=name_place(context.services.settings),
        state=ProcessState.ASKED,
        background=call.background,
        created_at=0,
    )
    return await context.services.store.write(processes.ask_process, asked, context.call_key)


async def _start(context: TurnContext, process: ShellProcess, call: ShellCall) -> ShellProcess:
    """Start the process, unless that was done before: two supervisors never run one command."""
    services = context.services
    place = name_place(services.settings)
    if process.state is not ProcessState.ASKED or process.host != place:
        return process
    try:
        order = await _make_order(context, call)
        with keep_permit():
            await supervision.find_folder(services.settings, process.id).start(order)
    except SandboxError:
        # The call tells it, and no completion once more.
        await services.store.write(processes.set_background, process.id, on=False)
        raise
    await services.store.write(processes.mark_running, process.id)
    return process


async def _make_order(context: TurnContext, call: ShellCall) -> SupervisorOrder:
    found = await find_sandbox(context)
    sandbox, policy = found.choice.require_sandbox(), _lower_limit(found.policy, call.seconds)
    argv, readable = call.argv, ()
    if call.is_python:
        program, readable = _find_python(policy.level)
        argv = [program, *argv]
    readable = (*readable, *await call.find_readable(context))
    request = policy.make_request(context.scope, session=context.session, readable=readable)
    request = replace(request, takes_input=call.background)
    await sandbox.prepare(request)
    return make_order(argv, request, sandbox)


def _lower_limit(policy: SandboxPolicy, seconds: int) -> SandboxPolicy:
    if seconds <= 0:
        return policy
    limit = min(float(seconds), policy.limits.seconds)
    return replace(policy, limits=replace(policy.limits, seconds=limit))


def _find_python(level: str) -> tuple[str, Sequence[Path]]:
    """Return the interpreter, and what a command must be able to read for it."""
    if level == "box":
        return "python3", ()
    python = find_python()
    return str(python.executable), python.readable


async def _wait(context: TurnContext, process: ShellProcess, call: ShellCall) -> str:
    services, limit = context.services, context.services.settings.sandbox.output
    if process.background and process.state.is_open:
        return format_unfinished(process, "", asked=call.background)
    if process.state.is_open:
        waited = time.time() - process.created_at / 1000 if process.created_at else 0.0
        seconds = max(1.0, call.foreground - waited)
        process = await supervision.wait_for_end(services, process, seconds=seconds)
    if process.state.is_open:
        process = await services.store.write(
            processes.set_background, process.id, on=True, call=context.call_key
        )
    output = supervision.read_output(services.settings, process, limit)
    if process.state.is_open:
        return format_unfinished(process, output, asked=False)
    return format_result(process, output)


async def _stop_with_turn(context: TurnContext, process: ShellProcess) -> None:
    """
    Stop a process whose turn was stopped, unless it is in the background.

    A gateway that ends cancels its calls as well: then the process goes on, and the next gateway
    continues the turn. Whatever is missed here, the watcher finds.
    """
    services = context.services
    with suppress(StoreError):
        turn = await services.store.read(turn_queries.get_turn, context.turn)
        process = await services.store.read(processes.get_process, process.id)
        if turn.stop is None or process.background:
            return
        await supervision.stop(services, process, _PERSON)
        await supervision.wait_for_end(services, process, seconds=STOP_PATIENCE)
