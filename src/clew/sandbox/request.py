"""The terms of a sandbox: its level, its limits, and one request to run in it."""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clew.sandbox.supervisor.order import PROXY_PORT
from clew.sandbox.workspace import Workspace, name_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.core.sandbox_level import Level

#: For doctor, status, the log and the question before a command.
HOST_WARNING: Final = (
    "commands run without a sandbox, with all rights of this user: set sandbox.level to work"
)
_PATH: Final = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    *(("/opt/homebrew/bin",) if sys.platform == "darwin" else ()),
)
_MEBIBYTE: Final = 1024 * 1024
_PROXY: Final = f"http://127.0.0.1:{PROXY_PORT}"
#: Some programs read the one, some the other.
_PROXY_VARIABLES: Final = {
    **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), _PROXY),
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _PROXY),
    **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLimits:
    """The resources that a command and all processes that it starts may use."""

    #: Bytes of memory.
    memory: int = 1024 * _MEBIBYTE
    processes: int = 128
    #: Seconds until it is stopped; also the processor time of each of its processes.
    seconds: float = 120.0
    #: Bytes of its output that are kept: the first half and the last.
    output: int = 60_000
    #: Bytes on the disk that the whole workspace may take.
    disk: int = 1024 * _MEBIBYTE


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxRequest:
    """A command's place: its workspace, level, environment, and what else it may read."""

    workspace: Path
    #: ``read``, ``work`` or ``net``; ``box`` and ``host`` treat them alike.
    level: Level = "work"
    limits: CommandLimits = CommandLimits()
    #: More files and folders that it may read, for example an interpreter or a skill.
    readable: Sequence[Path] = ()
    #: The session, as ``CLEW_SESSION_ID`` and ``HERMES_SESSION_ID``.
    session: str = ""
    #: More variables, for example secrets that the settings name.
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    #: The socket of the proxy, for the level ``net``.
    proxy: Path | None = None
    #: It reads what it is given while it runs; else its input is empty.
    takes_input: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxPolicy:
    """The settings of the sandbox, as its users need them."""

    level: Level = "work"
    limits: CommandLimits = CommandLimits()
    #: Holds the workspaces of the scopes.
    folder: Path
    #: One workspace for all scopes, instead.
    shared_workspace: Path | None = None
    #: Folders that no command may read: the data folder, with the database.
    private: Sequence[Path] = ()
    #: The variables of ``sandbox.secrets``.
    secrets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    #: The image of ``box``.
    image: str = ""
    #: The socket of the proxy, which serves the level ``net``.
    proxy: Path | None = None

    def workspace_of(self, scope: str) -> Workspace:
        """Return the workspace of a scope; it may not exist yet."""
        return Workspace(self.shared_workspace or self.folder / name_folder(scope))

    def make_request(
        self, scope: str, *, session: str = "", readable: Sequence[Path] = ()
    ) -> SandboxRequest:
        """Return a request at the level of the settings, in the workspace of the scope."""
        return SandboxRequest(
            workspace=self.workspace_of(scope).root,
            level=self.level,
            limits=self.limits,
            readable=readable,
            session=session,
            environment=self.secrets,
            proxy=self.proxy if self.level == "net" else None,
        )


def make_environment(request: SandboxRequest) -> dict[str, str]:
    """Return the whole environment of a command: nothing of this process but the language."""
    environment = {
        "PATH": ":".join(_PATH),
        "HOME": str(request.workspace),
        "LANG": os.environ.get("LANG") or "C.UTF-8",
        **(_PROXY_VARIABLES if request.level == "net" else {}),
        **request.environment,
    }
    return environment | make_session_variables(request)


def make_session_variables(request: SandboxRequest) -> dict[str, str]:
    """Return the variables that name the session, the second one for scripts that know it."""
    names = ("CLEW_SESSION_ID", "HERMES_SESSION_ID") if request.session else ()
    return dict.fromkeys(names, request.session)


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonRuntime:
    """The Python interpreter that commands can run, and the folder that it needs."""

    executable: Path
    readable: tuple[Path, ...]


def find_python() -> PythonRuntime:
    """Return the interpreter of this process, without the packages of its environment."""
    base = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    prefix = Path(sys.base_prefix)
    if prefix.is_relative_to("/usr") and base.is_relative_to("/usr"):
        return PythonRuntime(executable=base, readable=())
    if not Path.home().is_relative_to(prefix):
        return PythonRuntime(executable=base, readable=(prefix,))
    # Installed into the home folder, which commands must not see.
    library = Path(sysconfig.get_path("stdlib"))
    return PythonRuntime(
        executable=base, readable=(base, library, *library.parent.glob("libpython*.so*"))
    )
