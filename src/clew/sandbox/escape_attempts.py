"""
Attempts to get out of a sandbox, run inside of it; each prints one line of JSON.

The text of this module is given to an interpreter with ``-c`` and a description of the targets. It
imports nothing of Clew. All targets are decoys, or are left as they are.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    #: The result if the attempt succeeded, else the reason for its failure.
    Outcome: TypeAlias = tuple[str, str]

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
MS_REMOUNT_BIND = 32 | 4096
KEYCTL = {"x86_64": 250, "aarch64": 219}
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE_NEWUSER = 0x10000000
#: A packet that finds no way out says so at once.
NO_WAY = (errno.EPERM, errno.EACCES, errno.ENETUNREACH, errno.ENETDOWN, errno.EAFNOSUPPORT)
METADATA = "169.254.169.254"
TIMEOUT = 0.3


def read_files(paths: list[str]) -> Outcome:
    """Read the first file that can be read."""
    reasons: list[str] = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                return f"read {len(file.read(64))} bytes of {path}", ""
        except OSError as error:
            reasons.append(error.strerror or str(error))
    return "", ", ".join(dict.fromkeys(reasons))


def read_environment(pids: list[int], canary: str) -> Outcome:
    """Read the environment of a process outside."""
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if canary.encode() in file.read():
                return f"read the environment of process {pid}", ""
    return "", "no such process, or no permission"


def write_files(paths: list[str]) -> Outcome:
    """Create a file outside of the workspace."""
    reasons: list[str] = []
    for path in paths:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError as error:
            reasons.append(error.strerror or str(error))
        else:
            os.unlink(path)
            return f"wrote {path}", ""
    return "", ", ".join(dict.fromkeys(reasons))


def change_mode(path: str) -> Outcome:
    """Change the permissions of a file outside, and its owner."""
    os.chmod(path, 0o640)
    return f"changed the mode of {path}", ""


def limit_process(pid: int) -> Outcome:
    """Remove resources that a process outside needs to continue."""
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (8, 8))
    return f"limited process {pid}", ""


def slow_down(pid: int) -> Outcome:
    """Take the processor from a process outside."""
    if pid == os.getpid():
        return "", "it is another process here"
    reasons: list[str] = []
    attempts = (
        lambda: os.setpriority(os.PRIO_PROCESS, pid, 15),
        lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
        lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
    )
    for attempt in attempts:
        try:
            attempt()
        except OSError as error:
            reasons.append(error.strerror or str(error))
        else:
            return f"changed the priority of process {pid}", ""
    return "", ", ".join(dict.fromkeys(reasons))


def change_dates(path: str) -> Outcome:
    """Change when a file outside was changed."""
    os.utime(path, (1, 1))
    return f"changed the dates of {path}", ""


def make_setuid(name: str) -> Outcome:
    """Leave a program in the workspace that others run with the rights of this user."""
    with open(name, "w") as file:
        file.write("#!/bin/sh\n")
    os.chmod(name, 0o4711)
    return f"made a program with the mode {os.stat(name).st_mode & 0o7777:o}", ""


def enter_namespace() -> Outcome:
    """Become root of a namespace of its own, in which more of the kernel can be reached."""
    # With the lock of the interpreter, which the child could not get from another thread.
    libc = ctypes.PyDLL(None, use_errno=True)
    made = libc.syscall(CLONE[os.uname().machine], CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if made == 0:
        os._exit(0)
    if made < 0:
        return "", os.strerror(ctypes.get_errno())
    os.waitpid(made, 0)
    return "started a process in a user namespace of its own", ""


def connect(addresses: list[tuple[str, list[object] | str]]) -> Outcome:
    """Connect to one of the addresses; what was not refused at once may have left."""
    reasons: list[str] = []
    for family, address in addresses:
        target = tuple(address) if isinstance(address, list) else address.replace("@", "\0", 1)
        try:
            with socket.socket(getattr(socket, family)) as client:
                client.settimeout(TIMEOUT)
                client.connect(target)
                return f"connected to {address}", ""
        except TimeoutError:
            return f"packets to {address} were sent", ""
        except OSError as error:
            nobody = error.errno == errno.ECONNREFUSED and address[0] != METADATA
            if family == "AF_INET" and not nobody and error.errno not in NO_WAY:
                return f"packets to {address} were sent ({error.strerror})", ""
            reasons.append(error.strerror or str(error))
    return "", ", ".join(dict.fromkeys(reasons))


def open_vsock() -> Outcome:
    """Open a socket to the host of a virtual machine; it is not connected."""
    with socket.socket(socket.AF_VSOCK):
        return "opened a socket to the host of this virtual machine", ""


def use_keys() -> Outcome:
    """Look at the keys that the kernel keeps for this user."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(KEYCTL[os.uname().machine], 0, -3, 0) >= 0:
        return "reached the session's keyring", ""
    return "", os.strerror(ctypes.get_errno())


def attach(pid: int) -> Outcome:
    """Trace a process outside."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_ATTACH, pid, None, None) == 0:
        os.waitpid(pid, 0x40000000)
        libc.ptrace(PTRACE_DETACH, pid, None, None)
        return f"traced process {pid}", ""
    return "", os.strerror(ctypes.get_errno())


def mount(folder: str) -> Outcome:
    """Mount something, and make a mount writable again."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", folder.encode(), b"tmpfs", 0, None) == 0:
        libc.umount2(folder.encode(), 2)
        return "mounted a file system", ""
    reason = os.strerror(ctypes.get_errno())
    if libc.mount(None, b"/usr", None, MS_REMOUNT_BIND, None) == 0:
        return "made /usr writable", ""
    return "", reason


def change_kernel(path: str) -> Outcome:
    """Write a setting of the kernel, with the value that it has."""
    with open(path, "r+") as file:
        value = file.read()
        file.seek(0)
        file.write(value)
    return f"wrote {path}", ""


def kill(pid: int) -> Outcome:
    """End a process outside."""
    if pid == os.getpid():
        return "", "it is another process here"
    os.kill(pid, signal.SIGKILL)
    return f"killed process {pid}", ""


def swap_links(target: str, seconds: float) -> None:
    """Let a name of the workspace lead out and in again, while the gateway reads it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        os.symlink(target, "swap-new")
        os.replace("swap-new", "swap")
        with open("swap-new", "w") as file:
            file.write("inside")
        os.replace("swap-new", "swap")


def fork_many(count: int) -> None:
    """Start far more processes than are allowed; each ends by itself soon."""
    for made in range(count):
        try:
            if os.fork() == 0:
                time.sleep(10)
                os._exit(0)
        except OSError as error:
            print(f"refused after {made}: {error.strerror}", flush=True)
            break
    else:
        print(f"started {count}", flush=True)
    time.sleep(10)


def attempt_all(targets: dict[str, Any]) -> None:
    """Try everything but the processes."""
    swapper = threading.Thread(target=swap_links, args=(targets["canary"], targets["seconds"]))
    swapper.start()
    attempts = {
        "ssh": lambda: read_files(targets["ssh"]),
        "database": lambda: read_files(targets["database"]),
        "environ": lambda: read_environment(targets["pids"], targets["secret"]),
        "write": lambda: write_files(targets["outside"]),
        "loopback": lambda: connect(targets["loopback"]),
        "lan": lambda: connect(targets["lan"]),
        "metadata": lambda: connect(targets["metadata"]),
        "unix": lambda: connect(targets["unix"]),
        "vsock": open_vsock,
        "keys": use_keys,
        "mode": lambda: change_mode(targets["canary"]),
        "limits": lambda: limit_process(targets["pids"][0]),
        "dates": lambda: change_dates(targets["canary"]),
        "setuid": lambda: make_setuid("setuid"),
        "priority": lambda: slow_down(targets["pids"][0]),
        "namespace": enter_namespace,
        "ptrace": lambda: attach(targets["pids"][0]),
        "mount": lambda: mount(targets["folder"]),
        "kernel": lambda: change_kernel(targets["kernel"]),
        "kill": lambda: kill(targets["pids"][0]),
    }
    for name, attempt in attempts.items():
        try:
            got, reason = attempt()
        except OSError as error:
            got, reason = "", error.strerror or str(error)
        print(json.dumps([name, got, reason]), flush=True)
    swapper.join()


if __name__ == "__main__":
    DESCRIBED = json.loads(sys.argv[1])
    if isinstance(DESCRIBED, int):
        fork_many(DESCRIBED)
    else:
        attempt_all(DESCRIBED)
