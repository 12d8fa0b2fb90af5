"""Running of a command to its end: bounded in output, time, memory, processes and disk."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clew.sandbox.bounded_output import BoundedOutput
from clew.sandbox.errors import SandboxError
from clew.sandbox.output_pipe import OutputPipe
from clew.sandbox.process_tree import signal_descendants
from clew.sandbox.protocol import FIRST_BYTE, run_program
from clew.sandbox.watch import get_disk_meter, watch_usage

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Sequence

    from clew.sandbox.protocol import Sandbox
    from clew.sandbox.request import CommandLimits, SandboxRequest
    from clew.sandbox.watch import DiskMeter

#: Seconds between the request to end and the kill.
_GRACE: Final = 2.0
#: Seconds for output that a child left behind may still write.
_DRAIN: Final = 0.2
#: A command that writes more than this is stopped: reading it all would slow down everything else.
_FLOOD: Final = 64 * 1024 * 1024
_CHUNK: Final = 64 * 1024
#: The priority of commands below that of the gateway.
_NICENESS: Final = 10
#: Number of attempts to kill processes that others start again.
_KILL_ROUNDS: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandResult:
    """The end of a command and the output that was kept."""

    #: As the shell has it: 128 + N for a death by signal N.
    exit_code: int
    #: Standard output and standard error, as they came; the middle of a long one is left out.
    output: str
    #: Bytes of the output that are left out.
    left_out: int
    seconds: float
    #: The reason why it was stopped, as a sentence; ``None`` if it ended by itself.
    stopped: str | None = None
    #: Additional remark: that the workspace is full.
    notice: str | None = None

    @property
    def ending(self) -> str:
        """The end of the command in words."""
        return self.stopped or describe_exit(self.exit_code)


def describe_exit(code: int) -> str:
    """Return an exit code in words."""
    if code == 0:
        return "exit code 0"
    for name, meaning in _MEANINGS.items():
        if code == 128 + name:
            return f"exit code {code} ({meaning})"
    with suppress(ValueError):
        return f"exit code {code} (killed by {signal.Signals(code - 128).name})"
    return f"exit code {code}"


_MEANINGS: Final = {
    signal.SIGXCPU: "it used up its processor time",
    signal.SIGXFSZ: "it wrote a larger file than is allowed",
    signal.SIGSEGV: "killed by SIGSEGV: invalid memory access, or not enough memory",
}


async def run_command(
    argv: Sequence[str],
    request: SandboxRequest,
    sandbox: Sandbox,
    *,
    on_output: Callable[[bytes], None] | None = None,
) -> CommandResult:
    """
    Run a command in the sandbox until all of its processes have ended.

    Its input is empty. ``on_output`` receives the output while it is made, all of it.
    Cancelling ends the command.

    :raises SandboxError: if it cannot be started
    """
    if any("\0" in word for word in argv):
        raise SandboxError("a command cannot hold the character NUL")
    await sandbox.prepare(request)
    wrapped = sandbox.wrap(argv, request)
    disk = get_disk_meter(request.workspace, request.limits.disk)
    begun = time.monotonic()
    # With a pipe of its own, ``wait`` would wait for all who have inherited the pipe.
    pipe, answer = OutputPipe(), _Answer()
    try:
        environment = sandbox.make_environment(request)
        process = await _start_process(wrapped, environment, pipe.theirs, answer.theirs)
        run = _CommandRun(process, pipe, request.limits, sandbox, on_output, answer)
        try:
            await run.follow(disk)
        finally:
            await asyncio.shield(asyncio.ensure_future(run.end_everything(wrapped)))
    finally:
        pipe.close()
        answer.close()
    return CommandResult(
        exit_code=_shell_code(process.returncode),
        output=run.output.format_text(),
        left_out=run.output.left_out,
        seconds=time.monotonic() - begun,
        stopped=run.stopped,
        notice=await disk.find_excess(),
    )


async def _start_process(
    wrapped: Sequence[str], environment: dict[str, str], output: int, answer: int
) -> Process:
    try:
        process = await asyncio.create_subprocess_exec(
            *wrapped,
            stdin=answer,
            stdout=output,
            stderr=output,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxError(f"the command cannot be started: {error.strerror or error}") from error
    finally:
        os.close(output)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
    return process


def _shell_code(code: int | None) -> int:
    return 0 if code is None else code if code >= 0 else 128 - code


class _Answer:
    """A line for a command that has begun: whoever sends it is alive, and will end it."""

    def __init__(self) -> None:
        self.theirs, self._ours = os.pipe()

    def send(self) -> None:
        with suppress(OSError):
            os.write(self._ours, b"\n")

    def close(self) -> None:
        os.close(self.theirs)
        os.close(self._ours)


class _CommandRun:
    """One running command."""

    def __init__(
        self,
        process: Process,
        pipe: OutputPipe,
        limits: CommandLimits,
        sandbox: Sandbox,
        on_output: Callable[[bytes], None] | None,
        answer: _Answer,
    ) -> None:
        self._process, self._pipe, self._limits = process, pipe, limits
        self._sandbox, self._on_output, self._answer = sandbox, on_output, answer
        self.output = BoundedOutput(limits.output)
        self.stopped: str | None = None
        self._flooded: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def follow(self, disk: DiskMeter) -> None:
        """Read the output until the command ends or reaches a limit."""
        watch = asyncio.ensure_future(watch_usage(self._process.pid, self._limits, disk))
        reader = asyncio.ensure_future(self._read_output())
        ended = asyncio.ensure_future(self._process.wait())
        try:
            async with asyncio.timeout(self._limits.seconds):
                await asyncio.wait(
                    [watch, ended, self._flooded], return_when=asyncio.FIRST_COMPLETED
                )
        except TimeoutError:
            self.stopped = f"stopped after {self._limits.seconds:g} seconds"
            await self._ask_to_end(ended)
        else:
            if self._flooded.done():
                self.stopped = f"stopped: it wrote more than {_FLOOD:,} bytes of output"
            elif watch.done() and not ended.done():
                self.stopped = watch.result()
        finally:
            watch.cancel()
            await self._kill()
            await asyncio.wait([reader], timeout=_DRAIN)
            reader.cancel()
            await asyncio.gather(watch, reader, return_exceptions=True)

    async def _read_output(self) -> None:
        first = True
        while data := await self._pipe.read(_CHUNK):
            if first:
                self._answer.send()
                data, first = data.removeprefix(FIRST_BYTE), False
            self.output.add_output(data)
            if self._on_output is not None:
                self._on_output(data)
            if self.output.total > _FLOOD and not self._flooded.done():
                self._flooded.set_result(None)

    async def _ask_to_end(self, ended: asyncio.Future[int]) -> None:
        """Let the command end by itself, where it listens to signals."""
        if self._sandbox.end_signal is None:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGTERM)
        signal_descendants(self._process.pid, signal.SIGTERM)
        await asyncio.wait([ended], timeout=_GRACE)

    async def _kill(self) -> None:
        """Kill all processes of the command."""
        if (number := self._sandbox.end_signal) is not None:
            if self._process.returncode is None:
                with suppress(OSError):
                    os.kill(self._process.pid, number)
                await self._ends_within(_GRACE)
            if self._process.returncode is not None:
                return
        for _ in range(_KILL_ROUNDS):
            if not signal_descendants(self._process.pid, signal.SIGKILL):
                break
            await asyncio.sleep(0)
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._ends_within(_GRACE)

    async def _ends_within(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()

    async def end_everything(self, wrapped: Sequence[str]) -> None:
        """Leave nothing behind."""
        await self._kill()
        if (ending := self._sandbox.make_ending(wrapped)) is not None:
            await run_program(ending)
