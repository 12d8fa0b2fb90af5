"""Stop the owner of a turn past its lease, 20 times, and let it go on after a take-over."""

from __future__ import annotations

import asyncio
import itertools

from tests.killing import processes
from tests.killing.campaign import Campaign
from tests.killing.child import Job
from tests.killing.pausing import PAUSES, stop_and_go_on
from tests.killing.verdict import verdict
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

TIMES = 20


def run() -> Table:
    rows: list[tuple[object, ...]] = []
    with server() as url:
        for database in DATABASES:
            campaign, wrong = _pauses(database, url)
            rows += [(database, place, count, "") for place, count in campaign.kills.items()]
            rows.append((database, "all", campaign.kills.total(), len(wrong)))
    return Table(
        title="SIGSTOP past the lease, take-over, SIGCONT",
        columns=("database", "stopped at", "times", "violations"),
        rows=tuple(rows),
        passed=all(not row[3] for row in rows),
    )


def _pauses(database: str, server_url: str) -> tuple[Campaign, list[str]]:
    with fresh(database, server_url) as (url, home), processes.provider(home) as provider:
        campaign = Campaign(job=Job(folder=home, store_url=url, provider=provider))
        for pause in itertools.islice(itertools.cycle(PAUSES), TIMES):
            stop_and_go_on(campaign, pause)
        campaign.finish()
        wrong = asyncio.run(verdict(campaign.job))
    for sentence in wrong:
        print(f"{database}: {sentence}", flush=True)
    return campaign, wrong
