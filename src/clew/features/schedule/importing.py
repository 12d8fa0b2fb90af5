"""Jobs of other systems."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.features.schedule.jobs import JOBS, pause_job
from clew.features.schedule.making import create_job

if TYPE_CHECKING:
    from clew.features.schedule.making import JobOwner, JobRequest
    from clew.store.contract import Tx


def import_job(
    t: Tx, origin: tuple[str, str], request: JobRequest, owner: JobOwner, *, reason: str
) -> bool:
    """
    Store a job, paused; return whether it is new.

    :param origin: the system, and the job's id there: the same one is stored once
    :raises UsageError: as ``create_job``
    """
    digest = hashlib.sha256("\0".join(origin).encode()).hexdigest()
    name = f"job_{digest[:28]}"
    if JOBS.fetch_one(t, "WHERE id = $1", name) is not None:
        return False
    pause_job(t, create_job(t, name, request, owner), reason=reason)
    return True
