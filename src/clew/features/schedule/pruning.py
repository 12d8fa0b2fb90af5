"""Removal of old fires, and of jobs that have ended, from the store."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from clew.features.schedule.settings import ScheduleSettings
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

#: Rows in one transaction.
_SLICE: Final = 500


async def prune_jobs(services: FeatureContext, settings: ScheduleSettings) -> int:
    """Remove what is older than the settings keep; return how many rows."""
    age = timedelta(days=settings.keep_days) // timedelta(milliseconds=1)
    count = 0
    while removed := await services.store.write(remove_old_rows, age=age):
        count += removed
    return count


def remove_old_rows(t: Tx, *, age: int, limit: int = _SLICE) -> int:
    """
    Remove fires that ended more than ``age`` ms ago, and jobs without slots and fires.

    The last fire of a job stays, and so does each that counts for its number of runs.
    """
    fires = t.execute(
        """
        DELETE FROM schedule_fire WHERE (job, slot) IN (
            SELECT f.job, f.slot FROM schedule_fire f JOIN schedule_job j ON j.id = f.job
            WHERE f.at <= $1 AND f.state <> 'started'
              AND (j.state = 'done' OR j.max_runs IS NULL OR f.state IN ('skipped', 'missed'))
              AND (j.state = 'done' OR f.slot < (
                  SELECT max(g.slot) FROM schedule_fire g WHERE g.job = f.job
              ))
            LIMIT $2
        )
        """,
        t.now - age,
        limit,
    )
    jobs = t.execute(
        """
        DELETE FROM schedule_job WHERE state = 'done' AND created_at <= $1
          AND asked_at IS NULL
          AND NOT EXISTS (SELECT 1 FROM schedule_fire f WHERE f.job = schedule_job.id)
        """,
        t.now - age,
    )
    return fires + jobs
