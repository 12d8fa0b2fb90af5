"""The proof of a sandbox on this machine: known ways out are tried for real, from the inside."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from clew.sandbox.errors import FileRefused
from clew.sandbox.request import CommandLimits, SandboxRequest, find_python
from clew.sandbox.runner import run_command
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping, Sequence

    from clew.sandbox.protocol import Sandbox

#: The attempts, in the order in which they are reported.
ESCAPES: Final[Mapping[str, str]] = {
    "ssh": "read ~/.ssh",
    "database": "read the database",
    "environ": "read the environment of the gateway",
    "write": "write outside of the workspace",
    "mode": "change permissions outside of the workspace",
    "dates": "change dates of files outside of the workspace",
    "setuid": "leave a program that runs with this user's rights",
    "loopback": "connect to this machine",
    "lan": "connect to the local network",
    "metadata": "connect to the metadata service",
    "unix": "connect to a Unix socket",
    "vsock": "reach the host of a virtual machine",
    "keys": "use the keys that the kernel keeps for this user",
    "kill": "kill the gateway",
    "limits": "set limits of the gateway",
    "priority": "slow the gateway down",
    "fork": "start processes without end",
    "swap": "swap a symbolic link",
    "ptrace": "trace the gateway",
    "mount": "mount a file system",
    "namespace": "enter a user namespace of its own",
    "kernel": "change a setting of the kernel",
}
_METADATA: Final = "169.254.169.254"
_KERNEL_SETTING: Final = "/proc/sys/vm/swappiness"
_SCRIPT: Final = Path(__file__).with_name("escape_attempts.py")
_SWAP_SECONDS: Final = 0.15
_LIMITS: Final = CommandLimits(memory=256 * 1024 * 1024, processes=16, seconds=20.0)
_FORKS: Final = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class EscapeResult:
    """The outcome of one attempt."""

    #: A key of ``ESCAPES``.
    name: str
    stopped: bool
    #: The obstacle that stopped it, or its result.
    detail: str

    @property
    def title(self) -> str:
        return ESCAPES[self.name]


async def try_escapes(
    sandbox: Sandbox,
    folder: Path,
    *,
    database: Path | None = None,
    python: str | None = None,
    proxy: Path | None = None,
) -> list[EscapeResult]:
    """
    Run every attempt in a workspace below ``folder``; return the outcome of each.

    ``python`` is an interpreter of the sandbox itself, instead of the one of this process;
    ``proxy`` is the socket of the proxy, for the level ``net``. The gateway is a stand-in that
    holds a secret; files that are read are real ones.

    :raises SandboxError: if a command cannot be started
    """
    workspace = Workspace(folder / f".escapes-{secrets.token_hex(4)}")
    workspace.create()
    try:
        with ExitStack() as stack:
            targets = _Targets(stack, workspace, database)
            return await _run_attempts(sandbox, targets, python, proxy)
    finally:
        await asyncio.to_thread(shutil.rmtree, workspace.root, ignore_errors=True)


async def _run_attempts(
    sandbox: Sandbox, targets: _Targets, python: str | None, proxy: Path | None
) -> list[EscapeResult]:
    runtime = find_python()
    request = SandboxRequest(
        workspace=targets.workspace.root,
        level="work" if proxy is None else "net",
        proxy=proxy,
        limits=_LIMITS,
        readable=() if python else runtime.readable,
    )
    argv = [python or str(runtime.executable), "-I", "-S", "-c", _SCRIPT.read_text()]
    stand_in = await targets.start_stand_in()
    try:
        told = json.dumps(targets.describe(stand_in.pid))
        attempts = asyncio.ensure_future(run_command([*argv, told], request, sandbox))
        read = await asyncio.to_thread(targets.read_swapped, attempts)
        output = (await attempts).output
        judged = _read_lines(output)
        # Not beside the others: where the kernel counts per user, it leaves them no process.
        forked = await run_command([*argv, str(_FORKS)], request, sandbox)
    finally:
        killed = stand_in.returncode is not None
        with suppress(ProcessLookupError):
            stand_in.kill()
        await stand_in.wait()
    if targets.was_reached:
        judged |= targets.was_reached
    if killed:
        judged["kill"] = ("the stand-in has ended", "")
    judged["swap"] = (read, "the link was not followed")
    grown = "" if forked.stopped or "refused" in forked.output else forked.output.strip()
    judged["fork"] = (grown, forked.stopped or forked.output.strip())
    return [
        _judge(name, judged.get(name, (f"it could not be tried: {output[-300:]}", "")))
        for name in ESCAPES
    ]


def _read_lines(output: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for line in output.splitlines():
        with suppress(ValueError):
            name, got, reason = cast("list[str]", json.loads(line))
            found[name] = got, reason
    return found


def _judge(name: str, found: tuple[str, str]) -> EscapeResult:
    got, reason = found
    return EscapeResult(name=name, stopped=not got, detail=got or reason)


class _Targets:
    """Targets of the attempts: a stand-in for the gateway, listeners and files outside."""

    def __init__(self, stack: ExitStack, workspace: Workspace, database: Path | None) -> None:
        self.workspace = workspace
        self._secret = secrets.token_hex(16)
        outside = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="clew-escape-", dir=workspace.root.parent)
        )
        self._outside = Path(outside)
        self._canary = self._outside / "canary"
        self._canary.write_text(self._secret)
        self._database = database
        self._listeners: dict[str, list[socket.socket]] = {
            "loopback": [_listen(stack, socket.AF_INET, ("127.0.0.1", 0))],
            "lan": [_listen(stack, socket.AF_INET, (place, 0)) for place in _own_addresses()],
            "unix": [_listen(stack, socket.AF_UNIX, place) for place in self._socket_names(stack)],
        }

    def _socket_names(self, stack: ExitStack) -> Sequence[str]:
        # The path of a socket is short; other files are where the data folder is.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="clew-"))
        abstract = [f"\0clew-{self._secret}"] if sys.platform == "linux" else []
        return [f"{folder}/socket", *abstract]

    async def start_stand_in(self) -> Process:
        """Start a process of this user with a secret in its environment."""
        return await asyncio.create_subprocess_exec(
            "/bin/sleep", "60", env={"CLEW_SECRET": self._secret}
        )

    def describe(self, stand_in: int) -> dict[str, Any]:
        """Return the targets for the attempts."""
        lan = self._addresses("lan") or [("AF_INET", ("192.168.255.254", 80))]
        return {
            "ssh": [str(path) for path in _private_files()] or [str(self._canary)],
            "database": [str(path) for path in (self._database, self._canary) if path],
            "pids": [stand_in, os.getpid()],
            "secret": self._secret,
            "outside": [str(self._outside / "new"), "/usr/clew-escape", "/etc/clew-escape"],
            "loopback": self._addresses("loopback"),
            "lan": lan,
            "metadata": [("AF_INET", (_METADATA, 80))],
            "unix": self._addresses("unix"),
            "folder": str(self.workspace.root),
            "kernel": _KERNEL_SETTING,
            "canary": str(self._canary),
            "seconds": _SWAP_SECONDS,
        }

    def _addresses(self, kind: str) -> list[tuple[str, object]]:
        return [
            (each.family.name, _plain_address(each.getsockname())) for each in self._listeners[kind]
        ]

    @property
    def was_reached(self) -> dict[str, tuple[str, str]]:
        """Return the kinds of listeners that have a connection."""
        found: dict[str, tuple[str, str]] = {}
        for kind, listeners in self._listeners.items():
            for listener in listeners:
                with suppress(BlockingIOError):
                    listener.accept()[0].close()
                    found[kind] = "a connection has arrived", ""
        return found

    def read_swapped(self, attempts: asyncio.Future[Any]) -> str:
        """Read the swapped name during the attempts; return the content from outside, if any."""
        while not attempts.done():
            with suppress(FileRefused):
                if self._secret.encode() in self.workspace.read_file("swap"):
                    return "a file outside was read"
        return ""


def _listen(stack: ExitStack, family: socket.AddressFamily, address: object) -> socket.socket:
    listener = stack.enter_context(closing(socket.socket(family)))
    listener.setblocking(False)
    listener.bind(cast("Any", address))
    listener.listen()
    return listener


def _plain_address(address: object) -> object:
    """Return an address that JSON can hold; ``@`` stands for the NUL of an abstract one."""
    if isinstance(address, bytes):
        return address.decode().replace("\0", "@", 1)
    return address


def _own_addresses() -> list[str]:
    """Return the address with which this machine would reach others; sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return []
        return [probe.getsockname()[0]]


def _private_files() -> list[Path]:
    """Return files of this user that no other user should read."""
    home = Path.home()
    with suppress(OSError):
        found = [path for path in (home / ".ssh").iterdir() if os.access(path, os.R_OK)]
        if found:
            return found[:3]
    others = (home / ".bash_history", home / ".profile")
    return [path for path in others if os.access(path, os.R_OK)]
