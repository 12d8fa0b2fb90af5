"""
A container per workspace, with docker or podman on the command line.

The container is started with the first command and goes on; each command runs in it by ``exec``.
The image says which programs there are; the workspace is its only volume.
"""

from __future__ import annotations

import os
import secrets
import shutil
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from clew.sandbox.errors import SandboxUnavailable
from clew.sandbox.protocol import ProbeReport, create_workspace, limit_argv, run_program
from clew.sandbox.request import make_session_variables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.sandbox.request import SandboxRequest

_PROGRAMS: Final = ("docker", "podman")
_FIX: Final = "install docker or podman, start it, and let this user use it"
#: Holds the number of each command's first process: the client of the engine is another one.
_RUNNING: Final = "/dev/shm"
#: Remembers its process, and becomes the command. The engine makes each a group of its own.
_REMEMBERED: Final = f'echo $$ > "{_RUNNING}/$1" && shift && exec "$@"'
#: Ends the group of that process.
_ENDING: Final = f'read p < "{_RUNNING}/$1" && kill -KILL "-$p"; rm -f "{_RUNNING}/$1"'
#: Variables by which the client finds its engine and its settings.
_CLIENT_VARIABLES: Final = (
    "PATH",
    "HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST",
)
_FOREVER: Final = "while :; do sleep 86400; done"


class ContainerSandbox:
    """The sandbox of a container engine."""

    end_signal = None
    gaps: Sequence[str] = ()

    def __init__(self, image: str, *, program: str | None = None) -> None:
        self._image = image
        found = (shutil.which(name) for name in ([program] if program else _PROGRAMS))
        self._program = next((path for path in found if path is not None), None)
        self.name = os.path.basename(self._program) if self._program else "a container"  # noqa: PTH119

    async def probe(self) -> ProbeReport:
        if self._program is None:
            return ProbeReport(works=False, detail="there is no docker or podman", fix=_FIX)
        code, said = await run_program(
            [self._program, "version", "--format", "{{.Server.Version}}"]
        )
        if code == 0:
            return ProbeReport(works=True, detail=f"version {said.strip()}, image {self._image}")
        detail = f"{self.name} does not answer ({said.strip() or f'exit code {code}'})"
        return ProbeReport(works=False, detail=detail, fix=_FIX)

    def wrap(self, argv: Sequence[str], request: SandboxRequest) -> list[str]:
        mark = secrets.token_hex(8)
        return [
            *(self._program or "docker", "exec", "--interactive"),
            *("--workdir", str(request.workspace)),
            # By name: the value is in the environment of the client, not in the list of processes.
            *(word for name in _variables(request) for word in ("--env", name)),
            *("--env", f"HOME={request.workspace}"),
            *(self._container_of(request), "/bin/sh", "-c", _REMEMBERED, "sh", mark),
            *limit_argv(argv, request),
        ]

    def make_environment(self, request: SandboxRequest) -> dict[str, str]:
        """Return the environment of the client, which finds its engine by it."""
        found = {name: os.environ[name] for name in _CLIENT_VARIABLES if name in os.environ}
        return {**found, **_variables(request)}

    async def prepare(self, request: SandboxRequest) -> None:
        if self._program is None:
            raise SandboxUnavailable(f"there is no docker or podman: {_FIX}")
        name = self._container_of(request)
        _, state = await run_program(
            [self._program, "inspect", "--format", "{{.State.Running}}", name]
        )
        if state.strip() == "true":
            return
        create_workspace(request)
        await run_program([self._program, "rm", "--force", name])
        code, said = await run_program([self._program, *self._start_arguments(request, name)])
        if code:
            raise SandboxUnavailable(f"the container cannot be started: {said.strip()}")

    def _start_arguments(self, request: SandboxRequest, name: str) -> list[str]:
        limits, workspace = request.limits, str(request.workspace)
        owner = request.workspace.stat()
        return [
            *("run", "--detach", "--init", "--name", name, "--network", "none"),
            *("--read-only", "--tmpfs", "/tmp:size=256m", "--shm-size", "64m"),
            *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--memory", str(limits.memory), "--memory-swap", str(limits.memory)),
            *("--pids-limit", str(limits.processes)),
            *("--user", f"{owner.st_uid}:{owner.st_gid}"),
            *("--volume", f"{workspace}:{workspace}:rw", "--workdir", workspace),
            *(word for path in request.readable for word in ("--volume", _readable(path))),
            *(self._image, "/bin/sh", "-c", _FOREVER),
        ]

    def _container_of(self, request: SandboxRequest) -> str:
        """Return a name for the container that changes with all that it is started with."""
        terms = (request.workspace, *request.readable, request.limits, self._image)
        return f"clew-{sha256(repr(terms).encode()).hexdigest()[:16]}"

    def make_ending(self, argv: Sequence[str]) -> Sequence[str]:
        """Return the command that ends the group of a command in the container."""
        words = [*argv]
        mark = words[words.index(_REMEMBERED) + 2]
        container = words[words.index(_REMEMBERED) - 3]
        ending = ("/bin/sh", "-c", _ENDING, "sh", mark)
        return [self._program or "docker", "exec", container, *ending]


def _variables(request: SandboxRequest) -> dict[str, str]:
    """Return the variables of a command beside its home; the path is that of the image."""
    return {"LANG": "C.UTF-8", **request.environment, **make_session_variables(request)}


def _readable(path: Path) -> str:
    return f"{path}:{path}:ro"
