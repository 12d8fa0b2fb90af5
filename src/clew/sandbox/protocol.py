"""The contract of a sandbox: a function from a command to the command that confines it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from clew.background import kill_and_wait, start_child
from clew.sandbox.request import make_environment
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

    from clew.sandbox.request import SandboxRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeReport:
    """The result of trying the sandbox on this machine."""

    works: bool
    #: The reason why it does not work, or its gaps; a clause for people.
    detail: str = ""
    #: Advice where it does not work: packages to install, permissions to grant.
    fix: str = ""


class Sandbox(Protocol):
    """One way to confine a command."""

    @property
    def name(self) -> str:
        """The mechanism, for people: ``bubblewrap``."""
        ...

    @property
    def end_signal(self) -> signal.Signals | None:
        """The signal to the first process that ends all of them; ``None`` if none does."""
        ...

    @property
    def gaps(self) -> Sequence[str]:
        """The ways in which commands at ``work`` are not kept apart; clauses for people."""
        ...

    async def probe(self) -> ProbeReport:
        """Try it on this machine."""
        ...

    def wrap(self, argv: Sequence[str], request: SandboxRequest) -> Sequence[str]:
        """Return the command that runs ``argv`` confined, with the limits of the request."""
        ...

    def make_environment(self, request: SandboxRequest) -> dict[str, str]:
        """Return the environment of the wrapped command."""
        ...

    async def prepare(self, request: SandboxRequest) -> None:
        """
        Make whatever the wrapped command needs.

        :raises SandboxUnavailable: if that is not possible now
        """
        ...

    def make_ending(self, argv: Sequence[str]) -> Sequence[str] | None:
        """Return a command that ends what a wrapped one left outside of its tree of processes."""
        ...


class ProcessSandbox:
    """A sandbox whose commands are processes of this machine, and end with their tree."""

    def make_environment(self, request: SandboxRequest) -> dict[str, str]:
        return make_environment(request)

    def make_ending(self, argv: Sequence[str]) -> Sequence[str] | None:
        """Return ``None``: nothing is outside of the tree of processes."""


#: Processes beside those that a command may have, so that one with too many is stopped with a
#: sentence, before it fails to start more.
SPARE_PROCESSES: Final = 16
#: The folder in a workspace that is ``TMPDIR``, where a command has no private /tmp.
TEMPORARY: Final = ".tmp"


def create_workspace(request: SandboxRequest, *, temporary: bool = False) -> None:
    """Create the workspace, and the folder in it for temporary files."""
    Workspace(request.workspace).create()
    if temporary:
        with suppress(FileExistsError):  # whatever a command has put there
            (request.workspace / TEMPORARY).mkdir(mode=0o700)


#: Seconds for a program of ours that answers at once: a version, a try.
_PROGRAM_TIMEOUT: Final = 30.0
#: Sets the limits that the kernel enforces for each process, and becomes the command. They cannot
#: be raised again. Units: 512 bytes, kibibytes, seconds. What a shell does not know is left out.
_LIMITED: Final = """\
ulimit -c 0; ulimit -n 1024; ulimit -f "$1"; ulimit -t "$2"; ulimit -d "$3" 2>/dev/null
[ "$4" = - ] || ulimit -p "$4" 2>/dev/null || ulimit -u "$4" 2>/dev/null
[ "$5" = input ] || exec </dev/null
shift 5; exec "$@"
"""
#: Writes the first byte of the output of each command, which nobody is shown. Its supervisor
#: answers with a line, and it dies with it from then on: without an answer it does not run.
_BEGIN: Final = "printf '\\0' && read -r _ || exit 1\n"


def limit_argv(
    argv: Sequence[str],
    request: SandboxRequest,
    *,
    processes: int | None = None,
    begin: str = _BEGIN,
) -> list[str]:
    """
    Return the command that sets the limits of the request and then becomes ``argv``.

    ``processes`` is for a user namespace that counts its own: elsewhere the kernel counts all
    processes of the user. ``begin`` is shell code that tells that it begins.
    """
    limits = request.limits
    numbers = (limits.disk // 512, int(limits.seconds) + 1, limits.memory // 1024, processes or "-")
    words = (*map(str, numbers), "input" if request.takes_input else "-")
    return ["/bin/sh", "-c", begin + _LIMITED, "sh", *words, *argv]


async def run_program(argv: Sequence[str]) -> tuple[int, str]:
    """Return the exit code and the output of one of our own calls, which end by themselves."""
    process = await start_child(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        # bwrap makes a process that has no word yet of ending with it.
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(_PROGRAM_TIMEOUT):
            output, _ = await process.communicate()
    except TimeoutError:
        return -1, f"{argv[0]} did not answer within {_PROGRAM_TIMEOUT:g} s"
    finally:
        await kill_and_wait(process)
    return process.returncode or 0, output.decode(errors="replace")
