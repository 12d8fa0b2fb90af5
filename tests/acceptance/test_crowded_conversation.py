"""Several processes in one conversation at once take turns, and lose nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.killing import processes
from tests.killing.campaign import Campaign
from tests.killing.child import Job
from tests.killing.crowding import crowd
from tests.killing.history import overlaps
from tests.killing.verdict import captured, history_of, verdict

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_of_many_clients_in_one_conversation_each_gets_its_answers_one_turn_at_a_time(
    store_url: str, tmp_path: Path
) -> None:
    with processes.provider(tmp_path) as provider:
        campaign = Campaign(job=Job(folder=tmp_path, store_url=store_url, provider=provider))
        crowd(campaign, clients=3, messages=5)
        campaign.finish()
        assert asyncio.run(verdict(campaign.job, ordered=False)) == []
        assert overlaps(history_of(campaign.job, captured(campaign.job))) == []
