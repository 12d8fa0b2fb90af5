"""The reasons to stop a command that uses too much of the machine."""

from __future__ import annotations

from clew.core.byte_size import format_size
from clew.sandbox.process_tree import (
    TreeCount,
    count_processes,
    measure_memory,
    read_available_memory,
)

#: A command is stopped where the whole machine has less memory left.
LEAST_AVAILABLE = 100 * 1024 * 1024
#: Threads for each process that it may have: the kernel has room for a number of both together.
THREADS = 16


def find_excess(root: int, *, processes: int) -> tuple[str | None, TreeCount]:
    """Return why the command below a process must be stopped at once, and what it runs."""
    threads = processes * THREADS
    count = count_processes(root, processes=processes, threads=threads)
    available = read_available_memory()
    if count.processes > processes:
        return f"stopped: it started more than {processes} processes", count
    if count.threads > threads:
        return f"stopped: it started more than {threads} threads", count
    if available is not None and available < LEAST_AVAILABLE:
        return "stopped: the machine has almost no memory left", count
    return None, count


def find_memory_excess(root: int, *, memory: int) -> tuple[str | None, int]:
    """Return why the command must be stopped for its memory, and its bytes; it may take seconds."""
    used = measure_memory(root)
    reason = f"stopped: it used more than {format_size(memory)} of memory"
    return reason if used > memory else None, used
