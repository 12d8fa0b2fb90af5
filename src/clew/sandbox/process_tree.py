"""
The processes that a command has started, and what they use; read from /proc.

Supervisors import it: it needs no module that takes much memory.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator
    from typing import TypeAlias

    #: Device and inode.
    FileId: TypeAlias = tuple[int, int]


class TreeCount(NamedTuple):
    """The processes below one, and their threads."""

    processes: int
    threads: int


def count_processes(root: int, *, processes: int, threads: int) -> TreeCount:
    """
    Count what descends from a process, until there is more of one kind.

    It waits for nobody. What else ``/proc`` tells of a process can wait for that process, while
    it forks; so those that fork all the time would be thousands by then.
    """
    count = tasks = 0
    for process in iter_descendants(root):
        count += 1
        with suppress(OSError):
            tasks += len(os.listdir(f"/proc/{process}/task"))
        if count > processes or tasks > threads:
            break
    return TreeCount(processes=count, threads=tasks)


def measure_memory(root: int) -> int:
    """Measure the bytes in the memory of what descends from a process, without files on disks."""
    own = shared = 0
    unnamed: dict[FileId, int] = {}
    for process in iter_descendants(root):
        found = _read_sizes(process, "status")
        own += found.get("RssAnon", 0)
        if found.get("RssShmem"):
            # Looking at each page takes longer, and few processes share any.
            shared += _read_sizes(process, "smaps_rollup").get("Pss_Shmem", found["RssShmem"])
        unnamed |= find_unnamed_files(process)
    # Those that are mapped as well are counted once.
    in_memory = sum(size for (device, _), size in unnamed.items() if not os.major(device))
    return own + max(shared, in_memory)


def iter_descendants(root: int) -> Iterator[int]:
    """Yield the processes that descend from a process, as far as they are still linked to it."""
    waiting, seen = [root], {root}
    while waiting:
        for child in _iter_children(waiting.pop()):
            if child not in seen:
                seen.add(child)
                waiting.append(child)
                yield child


def signal_descendants(root: int, number: signal.Signals) -> int:
    """Send a signal to all that descends from a process; return how many there were."""
    found = list(iter_descendants(root))
    for process in found:
        with suppress(OSError):
            os.kill(process, number)
    return len(found)


def _iter_children(process: int) -> Iterator[int]:
    # A process that ends in between has no children left.
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with suppress(OSError):
                yield from map(int, _read(f"/proc/{process}/task/{thread}/children").split())


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read().decode(errors="replace")


def _read_sizes(process: int, name: str) -> dict[str, int]:
    """Return the lines of a file of /proc that state a size, in bytes."""
    found: dict[str, int] = {}
    with suppress(OSError, ValueError):
        for line in _read(f"/proc/{process}/{name}").splitlines():
            if line.endswith(" kB"):
                key, _, size = line.removesuffix(" kB").partition(":")
                found[key] = int(size) * 1024
    return found


def measure_unnamed_files(root: int) -> int:
    """Return the bytes on disks that files without a name take, open or mapped below a process."""
    found: dict[FileId, int] = {}
    for process in iter_descendants(root):
        found |= find_unnamed_files(process)
    return sum(size for (device, _), size in found.items() if os.major(device))


def find_unnamed_files(process: int) -> dict[FileId, int]:
    """Return the bytes of each file without a name that a process has open or mapped."""
    found: dict[FileId, int] = {}
    with suppress(OSError):
        for line in _read(f"/proc/{process}/maps").splitlines():
            if line.endswith("(deleted)"):
                _add_mapped(line, found)
    with suppress(OSError), os.scandir(f"/proc/{process}/fd") as entries:
        for entry in entries:
            _add_open(entry, found)
    return found


def _add_open(entry: os.DirEntry[str], found: dict[FileId, int]) -> None:
    with suppress(OSError):
        state = entry.stat()
        if stat.S_ISREG(state.st_mode) and not state.st_nlink:
            found[state.st_dev, state.st_ino] = state.st_blocks * 512


def _add_mapped(line: str, found: dict[FileId, int]) -> None:
    """Add the size of a line of ``maps``: pages of it may never have been written."""
    span, _, _, device, inode, *_ = line.split()
    first, last = (int(one, 16) for one in span.split("-"))
    major, minor = (int(one, 16) for one in device.split(":"))
    if major:  # else it is memory, of which resident pages are counted
        key = os.makedev(major, minor), int(inode)
        found[key] = found.get(key, 0) + last - first


def read_available_memory() -> int | None:
    """Return the bytes of memory that the machine has left; ``None`` where it does not tell."""
    with suppress(OSError):
        for line in _read("/proc/meminfo").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None
