"""Due work of jobs, found in one read: an idle gateway does nothing else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clew.features.schedule import jobs, runs
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.store.contract import Tx


class DueJobs(Record):
    """Jobs that fire now, and runs that have ended; false if there are none."""

    jobs: Sequence[str]
    #: Job and slot.
    ended: Sequence[tuple[str, int]]
    #: Seconds until the next job is due.
    wait: float

    def __bool__(self) -> bool:
        return bool(self.jobs or self.ended)


def find_due_jobs(t: Tx, *, limit: int) -> DueJobs:
    """Return what is to be done now, at most ``limit`` of each kind."""
    next_due = jobs.find_next_due(t)
    return DueJobs(
        jobs=jobs.list_due_jobs(t, limit=limit),
        ended=[*runs.list_ended_runs(t, limit=limit), *runs.list_started_commands(t)],
        wait=math.inf if next_due is None else max(0.0, (next_due - t.now) / 1000),
    )
