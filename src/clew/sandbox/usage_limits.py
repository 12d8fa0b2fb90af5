"""The reasons to stop a command that uses too much, for the gateway and for supervisors."""

from __future__ import annotations

from clew.core.byte_size import format_size
from clew.sandbox.process_tree import TreeUsage, measure_tree, read_available_memory

#: A command is stopped where the whole machine has less memory left.
LEAST_AVAILABLE = 100 * 1024 * 1024


def find_excess(root: int, *, processes: int, memory: int) -> tuple[str | None, TreeUsage]:
    """Return why the command below a process must be stopped, if it must, and what it uses."""
    used = measure_tree(root, most_processes=processes)
    reason = None
    available = read_available_memory()
    if used.processes > processes:
        reason = f"stopped: it started more than {processes} processes"
    elif used.memory > memory:
        reason = f"stopped: it used more than {format_size(memory)} of memory"
    elif available is not None and available < LEAST_AVAILABLE:
        reason = "stopped: the machine has almost no memory left"
    return reason, used
