"""Our sandbox as a workspace backend of the model library, for its conformance suite."""

from __future__ import annotations

import math
import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_ai.workspaces import (
    CommandResult,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from clew.sandbox.runner import run_command
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.sandbox.protocol import Sandbox
    from clew.sandbox.request import SandboxRequest

#: Keeps the two outputs apart, which our runner returns as one.
_APART = 'exec 1>"$1" 2>"$2"; shift 2; exec env "$@"'


class SandboxBackend:
    """Runs commands in a sandbox; the library makes its file operations of them."""

    def __init__(
        self, sandbox: Sandbox, request: SandboxRequest, ref: WorkspaceRef | None = None
    ) -> None:
        self._sandbox, self._request, self.ref = sandbox, request, ref
        self._workspace = Workspace(request.workspace.resolve() if ref is None else Path(ref.id))

    async def working_dir(self) -> str:
        if self.ref is not None and not self._workspace.root.exists():
            raise WorkspaceUnavailableError(f"{self._workspace.root} is gone")
        self._workspace.create()
        self.ref = WorkspaceRef(provider="clew", id=str(self._workspace.root))
        return str(self._workspace.root)

    async def run(
        self,
        command: str | Sequence[str],
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (the protocol names it)
    ) -> CommandResult:
        if isinstance(command, str) is not shell:
            raise TypeError("a text needs shell=True, a sequence shell=False")
        if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
            raise ValueError("timeout must be positive")
        await self.working_dir()
        argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
        variables = [f"{name}={value}" for name, value in (env or {}).items()]
        names = [f".output-{secrets.token_hex(6)}-{number}" for number in (1, 2)]
        request = self._request
        if timeout is not None:
            request = replace(request, limits=replace(request.limits, seconds=timeout))
        try:
            wrapped = ["sh", "-c", _APART, "sh", *names, *variables, *argv]
            done = await run_command(wrapped, request, self._sandbox)
            out, err = [self._read(name) for name in names]
        finally:
            for name in names:
                self._workspace.remove_file(name)
        if done.stopped is not None:
            raise WorkspaceTimeoutError(done.stopped, stdout=out, stderr=err)
        return CommandResult(exit_code=done.exit_code, stdout=out, stderr=err)

    def _read(self, name: str) -> str:
        return self._workspace.read_file(name).decode(errors="replace")
