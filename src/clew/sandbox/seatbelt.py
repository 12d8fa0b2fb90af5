"""
Seatbelt, the sandbox of macOS: ``sandbox-exec`` with a profile that denies by default.

Apple calls the program deprecated, and every Mac has it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.sandbox.protocol import (
    TEMPORARY,
    ProbeReport,
    ProcessSandbox,
    create_workspace,
    limit_argv,
    run_program,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.sandbox.request import SandboxRequest

_READABLE: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library/Apple",
    "/Library/Developer/CommandLineTools",
    "/opt/homebrew",
    "/private/etc/ssl",
    "/private/etc/passwd",
    "/private/etc/localtime",
    "/private/var/db/timezone",
    "/private/var/select",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
)
_DEVICES: Final = ("/dev/null", "/dev/zero")
#: Signals only within the same sandbox; no network, also none to sockets in the file system.
_ALWAYS: Final = (
    "(version 1)",
    "(deny default)",
    "(allow process-fork)",
    "(allow process-exec)",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow file-read-metadata)",
    '(allow file-read* (literal "/"))',
    "(deny network*)",
)


class SeatbeltSandbox(ProcessSandbox):
    """The sandbox of macOS."""

    name = "sandbox-exec"
    end_signal = None
    gaps: Sequence[str] = (
        "names and sizes of files elsewhere can be seen, not their content",
        "the number of processes and their common memory are not counted",
    )

    async def probe(self) -> ProbeReport:
        program = shutil.which("sandbox-exec") if sys.platform == "darwin" else None
        if program is None:
            return ProbeReport(works=False, detail="sandbox-exec is a part of macOS")
        profile = make_profile(workspace=Path("/nonexistent"), readable=(), writable=False)
        code, said = await run_program([program, "-p", profile, "/usr/bin/true"])
        if code == 0:
            return ProbeReport(works=True)
        return ProbeReport(works=False, detail=f"sandbox-exec does not work here ({said.strip()})")

    def wrap(self, argv: Sequence[str], request: SandboxRequest) -> list[str]:
        workspace = str(request.workspace)
        profile = make_profile(
            workspace=request.workspace,
            readable=request.readable,
            writable=request.level == "work",
        )
        script = 'cd "$1" && export TMPDIR="$1/$2" && shift 2 && exec "$@"'
        return [
            *("sandbox-exec", "-p", profile),
            *("/bin/sh", "-c", script, "sh", workspace, TEMPORARY),
            *limit_argv(argv, request),
        ]

    async def prepare(self, request: SandboxRequest) -> None:
        create_workspace(request, temporary=True)


def make_profile(*, workspace: Path, readable: Sequence[Path], writable: bool) -> str:
    """Return the text of a profile; paths must be real ones, without symbolic links."""
    read = [*_READABLE, *map(str, readable), str(workspace)]
    write = [*_DEVICES, *([str(workspace)] if writable else [])]
    return "\n".join(
        [
            *_ALWAYS,
            *(f"(allow file-read* {_subpath(path)})" for path in read),
            *(f"(allow file-write* {_subpath(path)})" for path in write),
        ]
    )


def _subpath(path: str) -> str:
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'(subpath "{quoted}")'
