"""Running of a command to its end, under a supervisor that ends it with whoever waits for it."""

from __future__ import annotations

import math
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.background import shield_until_done
from clew.sandbox.errors import SandboxError
from clew.sandbox.process_folder import Life, ProcessFolder, make_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.sandbox.protocol import Sandbox
    from clew.sandbox.request import SandboxRequest

#: Seconds for a supervisor to end everything of a command that nobody waits for any more.
_PATIENCE: Final = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandResult:
    """The end of a command and the output that was kept."""

    #: As the shell has it: 128 + N for a death by signal N.
    exit_code: int
    #: Standard output and standard error, as they came; the middle of a long one is left out.
    output: str
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
    argv: Sequence[str], request: SandboxRequest, sandbox: Sandbox
) -> CommandResult:
    """
    Run a command in the sandbox until all of its processes have ended.

    Its input is empty. Cancelling ends it, and so does the end of this process.

    :raises SandboxError: if it cannot be started
    """
    await sandbox.prepare(request)
    order = make_order(argv, request, sandbox)
    folder = ProcessFolder(Path(tempfile.mkdtemp(prefix="clew-command-")))
    try:
        with folder.tie_to_this_process():
            await folder.start(order)
            await folder.wait(seconds=math.inf)
            return _read_result(folder, request.limits.output)
    finally:
        await shield_until_done(_end(folder))


def _read_result(folder: ProcessFolder, limit: int) -> CommandResult:
    ended = folder.read_exit()
    if ended is None:
        raise SandboxError("its supervisor was killed: what it has done is unknown")
    return CommandResult(
        exit_code=ended.code,
        output=folder.read_output(limit),
        seconds=(ended.ended - ended.started) / 1000,
        stopped=ended.why,
        notice=ended.notice,
    )


async def _end(folder: ProcessFolder) -> None:
    """Leave nothing behind: nobody waits for the command any more."""
    life = await folder.wait(seconds=_PATIENCE)
    if life is Life.GONE:
        await folder.end_elsewhere()
    # A supervisor that is still at it removes the folder itself.
    if life is not Life.ALIVE:
        folder.remove()
