"""A real systemd for one person, in namespaces of its own beside that of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Generator

_RUNTIME = "/run/user/0"
#: Becomes the first process of the namespace; systemd looks for signs that it runs the machine.
_BEGIN = f"""
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system {_RUNTIME}
chmod 700 {_RUNTIME}
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir /sys/fs/cgroup/init
echo $$ > /sys/fs/cgroup/init/cgroup.procs
systemd --user --unit=basic.target --log-level=warning
"""
_IN_NAMESPACES = (
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--cgroup"),
    *("--propagation=private", "sh", "-c"),
)
_PROGRAMS = ("systemd", "systemctl", "nsenter", "unshare")


def why_not() -> str | None:
    """Return why no systemd can be started here."""
    if missing := [name for name in _PROGRAMS if shutil.which(name) is None]:
        return f"{missing[0]} is not installed (apt install systemd)"
    if os.getuid() != 0:
        return "only root can mount a hierarchy of control groups"
    return None if _find_control_groups() else "there are no control groups of version 2"


def _find_control_groups() -> Path | None:
    mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    found = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
    return Path(found[0]) if found and os.access(found[0], os.W_OK) else None


@dataclass(frozen=True, kw_only=True)
class UserSystemd:
    """A systemd that runs, and the way to it."""

    #: Its first process, as seen from here.
    pid: int
    home: Path
    control_group: Path

    @property
    def environ(self) -> dict[str, str]:
        named = {"HOME": str(self.home), "XDG_RUNTIME_DIR": _RUNTIME}
        return {"PATH": os.environ["PATH"], **named}

    @property
    def units(self) -> Path:
        return self.home / ".config" / "systemd" / "user"

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program beside it, to its end."""
        inside = ["nsenter", f"--target={self.pid}", "--mount", "--pid", *argv]
        return subprocess.run(
            inside, env=self.environ, capture_output=True, text=True, check=False, timeout=200
        )

    def ok(self, *argv: str) -> str:
        done = self.run(*argv)
        assert done.returncode == 0, done
        return done.stdout

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.ok("systemctl", "--user", "show", "--value", f"--property={name}", unit).strip()


@contextmanager
def open_user_systemd(home: Path) -> Generator[UserSystemd]:
    """Start a systemd with a home of its own; all that runs under it ends with the block."""
    groups = _find_control_groups()
    assert groups is not None
    group = groups / f"clew-test-{os.getpid()}"
    group.mkdir()
    started = subprocess.Popen(
        ["sh", "-c", f'echo 0 > {group}/cgroup.procs && exec "$@"', "sh", *_IN_NAMESPACES, _BEGIN],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": _RUNTIME},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        first = int(block_until(lambda: _read_children(started.pid), "the first process"))
        manager = UserSystemd(pid=first, home=home, control_group=group)
        block_until(lambda: _is_up(manager), "systemd")
        yield manager
    finally:
        started.kill()
        started.wait()
        block_until(lambda: _remove_groups(group), "the end of everything in the control group")


def _read_children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").strip()


def _is_up(manager: UserSystemd) -> bool:
    return manager.run("systemctl", "--user", "is-active", "basic.target").returncode == 0


def _remove_groups(group: Path) -> bool:
    """Remove a control group with those in it; ``False`` while a process is in one."""
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()
    return not group.exists()
