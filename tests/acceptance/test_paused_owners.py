"""An owner that was stopped past its lease writes nothing when it goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.killing import processes
from tests.killing.campaign import Campaign
from tests.killing.child import Job
from tests.killing.pausing import PAUSES, stop_and_go_on
from tests.killing.verdict import verdict

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_owner_that_was_stopped_past_its_lease_finds_its_turn_ended_and_changes_nothing(
    store_url: str, tmp_path: Path
) -> None:
    with processes.provider(tmp_path) as provider:
        campaign = Campaign(job=Job(folder=tmp_path, store_url=store_url, provider=provider))
        # Each database has one of the two, and ``make soak pauses`` both.
        stop_and_go_on(campaign, PAUSES[store_url.startswith("postgresql")])
        campaign.finish()
        assert asyncio.run(verdict(campaign.job)) == []
