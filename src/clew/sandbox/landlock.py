"""
Landlock and seccomp: for Linux where user namespaces are forbidden, as in most containers.

A command uses the same files as everybody else, but only those that are named; it cannot open a
socket, and has no /proc. It has no private /tmp: ``TMPDIR`` is a folder in its workspace. It cannot
change the mode of a file, not even of its own, and dates only of one that it has open: Landlock
does not tell them apart.
"""

from __future__ import annotations

import json
import platform
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.sandbox.errors import SandboxError
from clew.sandbox.landlock_launcher import MACHINES, SCOPES_SINCE, landlock_version
from clew.sandbox.protocol import (
    SPARE_PROCESSES,
    TEMPORARY,
    ProbeReport,
    ProcessSandbox,
    create_workspace,
    limit_argv,
    run_program,
)
from clew.sandbox.request import find_python
from clew.sandbox.system_files import CONFIGURATION, NAMES, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.sandbox.request import SandboxRequest

_LAUNCHER: Final = Path(__file__).with_name("landlock_launcher.py")
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_FIX: Final = "use Linux 5.13 or newer with lsm=landlock among the kernel's parameters"


class LandlockSandbox(ProcessSandbox):
    """The sandbox of Linux without user namespaces."""

    name = "Landlock"
    #: The launcher ends everything, as soon as it is asked to.
    end_signal = signal.SIGTERM

    def __init__(self, *, private: Sequence[Path] = ()) -> None:
        self._private = private

    @property
    def gaps(self) -> Sequence[str]:
        always = ("names, sizes and dates of files elsewhere can be seen, not their content",)
        if landlock_version() >= SCOPES_SINCE:
            return always
        return (
            *always,
            "a command can send signals to other processes of this user",
            "processes that start others faster than they are ended",
        )

    async def probe(self) -> ProbeReport:
        detail = self._find_obstacle()
        if detail:
            return ProbeReport(works=False, detail=detail, fix=_FIX)
        rules = self._make_rules("/", readable=(), writable=(), processes=SPARE_PROCESSES)
        code, said = await run_program(launch_argv(rules, ["/bin/true"]))
        if code == 0:
            return ProbeReport(works=True)
        detail = f"Landlock does not work here ({said.strip() or f'exit code {code}'})"
        return ProbeReport(works=False, detail=detail, fix=_FIX)

    def _find_obstacle(self) -> str:
        if sys.platform != "linux":
            return "Landlock is a part of Linux"
        if platform.machine() not in MACHINES:
            return f"the network cannot be cut off on this processor ({platform.machine()})"
        if landlock_version() < 1:
            return "this kernel has no Landlock"
        return self._find_exposed(SYSTEM)

    def _find_exposed(self, readable: Sequence[str | Path]) -> str:
        """Return what would be readable: a part of a folder cannot be taken away from it."""
        for path in self._private:
            if any(map(path.is_relative_to, readable)):
                return f"{path} is in a folder that commands can read"
        return ""

    def wrap(self, argv: Sequence[str], request: SandboxRequest) -> list[str]:
        workspace = str(request.workspace)
        changing = request.level == "work"
        rules = self._make_rules(
            workspace,
            readable=[*map(str, request.readable), workspace],
            writable=[workspace] if changing else [],
            processes=request.limits.processes + SPARE_PROCESSES,
        )
        if changing:
            rules["environment"] = {"TMPDIR": f"{workspace}/{TEMPORARY}"}
        return launch_argv(rules, limit_argv(argv, request))

    @staticmethod
    def _make_rules(
        workspace: str, *, readable: Sequence[str], writable: Sequence[str], processes: int
    ) -> dict[str, object]:
        return {
            "readable": [*SYSTEM, *CONFIGURATION, *NAMES, *readable],
            "writable": [*_DEVICES, *writable],
            "workspace": workspace,
            "processes": processes,
            "environment": {},
            "host": False,
        }

    async def prepare(self, request: SandboxRequest) -> None:
        if exposed := self._find_exposed(request.readable):
            raise SandboxError(exposed)
        create_workspace(request, temporary=True)


def launch_argv(rules: Mapping[str, object], argv: Sequence[str]) -> list[str]:
    """Return the command that starts the launcher."""
    python = str(find_python().executable)
    return [python, "-I", "-S", str(_LAUNCHER), json.dumps(rules), *argv]
