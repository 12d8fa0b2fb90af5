"""
Bubblewrap: namespaces of their own, and an almost empty root.

A command sees /usr, a few files of /etc that programs need, its workspace and a private /tmp. It
has no network, no other process is visible, and it has no capability, also as root.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.sandbox.errors import SandboxUnavailable
from clew.sandbox.landlock_launcher import MACHINES, NEW_NAMESPACES, SETUID, build_filter
from clew.sandbox.protocol import (
    SPARE_PROCESSES,
    ProbeReport,
    ProcessSandbox,
    create_workspace,
    limit_argv,
    run_program,
)
from clew.sandbox.supervisor.order import PROXY_PORT
from clew.sandbox.system_files import CONFIGURATION, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.sandbox.request import SandboxRequest

#: Bytes of a private folder in memory.
_TEMPORARY_SIZE: Final = 256 * 1024 * 1024
_FIX: Final = (
    "install bubblewrap (apt install bubblewrap, dnf install bubblewrap), and allow user "
    "namespaces (sysctl kernel.unprivileged_userns_clone=1; on Ubuntu an AppArmor profile for "
    "/usr/bin/bwrap)"
)


#: The kernel that counts the processes of an ordinary user in each namespace by itself.
_COUNTS_SINCE: Final = (5, 14)
#: Calls that no namespace keeps apart: keys of this user, and parts of the kernel with many faults.
_REFUSED_CALLS: Final = (
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd"),
    *("io_uring_setup", "mount", "umount2", "pivot_root", "unshare", "setns", "open_tree"),
    *("move_mount", "fsopen", "fsmount", "mount_setattr", "open_tree_attr", "clone3"),
    "syslog",
)
#: Unix, IPv4, IPv6 and netlink have a namespace; others, such as vsock, reach the host.
_SOCKET_FAMILIES: Final = (1, 2, 10, 16)
#: What /proc tells root about the whole machine.
_MASKED: Final = ("keys", "key-users", "kallsyms", "sched_debug", "slabinfo", "timer_list")
_MASKS: Final = tuple(
    word
    for name in _MASKED
    if os.path.exists(f"/proc/{name}")  # noqa: PTH110  (of this machine, once)
    for word in ("--ro-bind", "/dev/null", f"/proc/{name}")
)
#: Waits until the first process of the namespace waits, which from then on ends with bwrap; then
#: for the answer of the gateway, which says that bwrap has not ended before that.
_BEGIN: Final = """\
while read -r _ _ state _ < /proc/1/stat && [ "$state" != S ]; do :; done
printf '\\0' && read -r _ || exit 1
"""
#: Waits until the relay listens: its port is in the kernel's list of sockets, in hexadecimal.
_AWAIT_RELAY: Final = f"""\
n=0; while :; do
  while read -r _ at _; do [ "$at" = 0100007F:{PROXY_PORT:04X} ] && break 2; done < /proc/net/tcp
  n=$((n + 1)); [ $n -lt 100 ] || sleep 0.01
  [ $n -lt 3000 ] || {{ echo "the network of the sandbox does not start"; exit 1; }}
done
"""
#: Opens the filter for bwrap, and becomes it.
_WITH_FILTER: Final = 'exec 3<"$1" && shift && exec "$@"'


class BubblewrapSandbox(ProcessSandbox):
    """The sandbox of Linux with user namespaces."""

    name = "bubblewrap"
    #: Killing the first process ends its namespace.
    end_signal = signal.SIGKILL

    def __init__(
        self, state: Path, *, private: Sequence[Path] = (), program: str | None = None
    ) -> None:
        #: Holds the generated files of /etc.
        self._etc = state / ".etc"
        self._filter = self._etc / "seccomp.filter"
        self._written = False
        #: Folders that stay hidden also where they are in a folder that can be read.
        self._private = private
        self._program = program or shutil.which("bwrap")
        #: The help of the program, once it was tried: older versions know fewer options.
        self._help: str | None = None

    @property
    def gaps(self) -> Sequence[str]:
        if platform.machine() in MACHINES:
            return ()
        return ("system calls are not filtered on this processor",)

    async def probe(self) -> ProbeReport:
        if self._program is None:
            return ProbeReport(works=False, detail="bwrap is not installed", fix=_FIX)
        self._write_files()
        _, self._help = await run_program([self._program, "--help"])
        code, said = await run_program([*self._isolate(), "/bin/true"])
        if code == 0:
            return ProbeReport(works=True)
        detail = f"bwrap does not work here ({said.strip() or f'exit code {code}'})"
        return ProbeReport(works=False, detail=detail, fix=_FIX)

    def wrap(self, argv: Sequence[str], request: SandboxRequest) -> list[str]:
        workspace = str(request.workspace)
        bind, closed = (
            ("--bind", ("/",))
            if request.level != "read"
            else ("--ro-bind", ("/tmp", "/dev/shm", "/"))
        )
        begin = _BEGIN if request.proxy is None else _BEGIN + _AWAIT_RELAY
        return [
            *self._isolate(),
            *(word for path in request.readable for word in ("--ro-bind", str(path), str(path))),
            *self._hide_private((*SYSTEM, *request.readable)),
            *(bind, workspace, workspace),
            *(word for place in closed for word in ("--remount-ro", place)),
            *("--chdir", workspace, "--"),
            *limit_argv(argv, request, processes=_limit_processes(request), begin=begin),
        ]

    async def prepare(self, request: SandboxRequest) -> None:
        if self._program is None:
            raise SandboxUnavailable(f"bwrap is not installed: {_FIX}")
        create_workspace(request)
        self._write_files()

    def _isolate(self) -> list[str]:
        size = self._if_known("--size", str(_TEMPORARY_SIZE))
        return [
            *self._start_program(),
            # "all" only tries to have its own user namespace, and continues without.
            *("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session"),
            *self._if_known("--disable-userns"),
            *("--cap-drop", "ALL", "--hostname", "sandbox"),
            # Root of the machine is the owner of /proc/sys, and needs no capability to write there.
            *("--proc", "/proc", *_MASKS, "--remount-ro", "/proc", "--dev", "/dev"),
            *(*size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),
            *(*size, "--tmpfs", "/tmp"),
            *self._system_mounts,
        ]

    def _hide_private(self, readable: Sequence[str | Path]) -> Sequence[str]:
        """Return options that cover the private folders; a workspace in one is bound later."""
        hidden = [path for path in self._private if any(map(path.is_relative_to, readable))]
        return [word for path in hidden for word in ("--tmpfs", str(path))]

    def _start_program(self) -> Sequence[str]:
        program = self._program or "bwrap"
        if platform.machine() not in MACHINES:
            return (program,)
        shell = ("/bin/sh", "-c", _WITH_FILTER, "sh", str(self._filter))
        return (*shell, program, "--seccomp", "3")

    def _if_known(self, option: str, *values: str) -> Sequence[str]:
        return (option, *values) if self._help is None or option in self._help else ()

    @cached_property
    def _system_mounts(self) -> Sequence[str]:
        return [word for mount in self._iter_mounts() for word in mount]

    def _iter_mounts(self) -> Iterator[tuple[str, ...]]:
        for place in SYSTEM:
            path = Path(place)
            if path.is_symlink():
                yield "--symlink", str(path.readlink()), place
            elif path.exists():
                yield "--ro-bind", place, place
        for place in CONFIGURATION:
            if Path(place).exists():
                yield "--ro-bind", place, place
        for name in _generate_etc():
            yield "--ro-bind", str(self._etc / name), f"/etc/{name}"

    def _write_files(self) -> None:
        if self._written and self._etc.exists():
            return
        self._etc.mkdir(parents=True, exist_ok=True, mode=0o700)
        files = {name: text.encode() for name, text in _generate_etc().items()}
        if platform.machine() in MACHINES:
            files[self._filter.name] = build_filter(
                _REFUSED_CALLS, {"socket": {0: _SOCKET_FAMILIES}}, {**NEW_NAMESPACES, **SETUID}
            )
        for name, content in files.items():
            path = self._etc / name
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)
        self._written = True


def _limit_processes(request: SandboxRequest) -> int | None:
    """Return a limit above the one that is watched, where the kernel counts by namespace."""
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    if version is None or tuple(map(int, version.groups())) < _COUNTS_SINCE:
        return None
    return request.limits.processes + SPARE_PROCESSES


def _generate_etc() -> dict[str, str]:
    """Return the files of /etc that would name the people of this machine."""
    user, group = os.getuid(), os.getgid()
    return {
        "passwd": f"clew:x:{user}:{group}::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
        "group": f"clew:x:{group}:\nnogroup:x:65534:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }
