"""The processes that a command has started, and what they use; read from /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator

_PROC: Final = Path("/proc")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeUsage:
    """The processes below one, and their memory."""

    processes: int
    #: Bytes that are not shared with a file.
    memory: int


def measure_tree(root: int, *, most_processes: int) -> TreeUsage:
    """Measure what descends from a process; stops counting when there are too many."""
    processes = memory = 0
    for process in iter_descendants(root):
        processes += 1
        memory += _read_memory(process)
        if processes > most_processes:
            break
    return TreeUsage(processes=processes, memory=memory)


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
        for thread in (_PROC / str(process) / "task").iterdir():
            with suppress(OSError):
                yield from map(int, (thread / "children").read_text().split())


def _read_memory(process: int) -> int:
    try:
        _, resident, shared, *_ = (_PROC / str(process) / "statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * _PAGE


def read_available_memory() -> int | None:
    """Return the bytes of memory that the machine has left; ``None`` where it does not tell."""
    with suppress(OSError):
        for line in (_PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None
