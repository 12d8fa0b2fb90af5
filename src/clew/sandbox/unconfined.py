"""The host itself: nothing is kept apart. For people who decide so, and are told all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.sandbox.policy import make_environment
from clew.sandbox.protocol import ProbeReport, limit_argv
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.sandbox.policy import SandboxRequest


class UnconfinedHost:
    """The absence of a sandbox."""

    name = "no sandbox"
    end_signal = None
    gaps: Sequence[str] = ("everything: files, network and processes of this user",)

    async def probe(self) -> ProbeReport:
        return ProbeReport(works=True)

    def wrap(self, argv: Sequence[str], request: SandboxRequest) -> list[str]:
        script = 'cd "$1" && shift && exec "$@"'
        limited = limit_argv(argv, request)
        return ["/bin/sh", "-c", script, "sh", str(request.workspace), *limited]

    def make_environment(self, request: SandboxRequest) -> dict[str, str]:
        return make_environment(request)

    async def prepare(self, request: SandboxRequest) -> None:
        Workspace(request.workspace).create()

    async def end_command(self, argv: Sequence[str]) -> None:
        """Do nothing: the processes are those of the tree."""
