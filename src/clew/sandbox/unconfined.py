"""The host itself, without isolation, for people who choose it; Clew warns about it."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from clew.sandbox.landlock import launch_argv
from clew.sandbox.protocol import ProbeReport, ProcessSandbox, create_workspace, limit_argv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.sandbox.request import SandboxRequest


class UnconfinedHost(ProcessSandbox):
    """The absence of a sandbox."""

    name = "no sandbox"
    #: On Linux the launcher ends what a command leaves, also what has left its group.
    end_signal = signal.SIGTERM if sys.platform == "linux" else None
    gaps: Sequence[str] = ("everything: files, network and processes of this user",)

    async def probe(self) -> ProbeReport:
        return ProbeReport(works=True)

    def wrap(self, argv: Sequence[str], request: SandboxRequest) -> list[str]:
        limited, workspace = limit_argv(argv, request), str(request.workspace)
        if sys.platform == "linux":
            rules: dict[str, object] = {"host": True, "workspace": workspace, "environment": {}}
            return launch_argv(rules, limited)
        return ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", workspace, *limited]

    async def prepare(self, request: SandboxRequest) -> None:
        create_workspace(request)
