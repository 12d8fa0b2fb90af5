"""Delivery of the reports of fires: a run that has ended may not have been told yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.schedule.jobs import make_fire_id
from clew.features.schedule.planning import ReportState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.features.schedule.jobs import JobFire, ScheduledJob
    from clew.store.contract import Tx


def find_reports(t: Tx, job: ScheduledJob, fires: Sequence[JobFire]) -> Mapping[int, ReportState]:
    """Return the state of the report of each slot that has one for a chat."""
    found: dict[int, ReportState] = {}
    for fire in fires:
        states = t.fetch_column(
            """
            SELECT DISTINCT state FROM delivery
            WHERE conversation_id = $1 AND (turn_id = $2 OR id = $3 OR id = $4)
            """,
            fire.conversation,
            fire.turn,
            f"dlv_{make_fire_id(job.id, fire.slot)}",
            f"dlv_{job.id}_{fire.slot}",
        )
        if states:
            found[fire.slot] = _sum_up(set(states))
    return found


def _sum_up(states: set[str]) -> ReportState:
    if "failed" in states:
        return ReportState.FAILED
    return ReportState.DELIVERED if states == {"delivered"} else ReportState.WAITING
