"""
Turns survive kill -9: at every point, on both databases, whatever their tools do.

``make soak kills`` kills 50 times at each point of both; here each takes every other point.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.killing import processes
from tests.killing.campaign import Campaign
from tests.killing.child import Job
from tests.killing.history import resume_times
from tests.killing.plans import WINDOW
from tests.killing.points import POINTS
from tests.killing.verdict import verdict

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_kill_at_any_point_loses_doubles_and_reorders_nothing(
    store_url: str, tmp_path: Path
) -> None:
    points = [point for point in POINTS if not point.long]
    points = points[store_url.startswith("postgresql") :: 2]
    with processes.provider(tmp_path) as provider:
        job = Job(folder=tmp_path, store_url=store_url, provider=provider, window=WINDOW)
        campaign = Campaign(job=job)
        campaign.run(points)
        assert asyncio.run(verdict(job, summaries=campaign.summaries)) == []
    rows = Counter(point.row for point in points for _ in range(campaign.kills[point.name]))
    assert min(rows.values()) >= 1
    assert campaign.kills.keys() == {point.name for point in points}
    slowest = max(resume_times(job.fronts.read()))
    sys.stdout.write(f"kills: {dict(rows)}\nresumed at the latest {slowest:.3f} s after ready\n")
