"""Eight clients with 25 messages each in one conversation at once: engines, and the programs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic_ai import Agent

from tests.killing import processes
from tests.killing.campaign import Campaign
from tests.killing.child import Job
from tests.killing.crowding import crowd
from tests.killing.history import overlaps
from tests.killing.programs import chats
from tests.killing.records import Ended
from tests.killing.verdict import captured, history_of, verdict
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import Callable

CLIENTS, MESSAGES = 8, 25


def run() -> Table:
    rows: list[tuple[object, ...]] = []
    with server() as url:
        for database in DATABASES:
            for name, work in (("engines", _engines), ("clew chat, clew serve", _programs)):
                rows.append((database, name, *_crowd(database, url, work)))
                print(rows[-1], flush=True)
    return Table(
        title=f"{CLIENTS} clients, {MESSAGES} messages each, one conversation",
        columns=("database", "processes", "outcomes", "requests", "violations", "overlaps"),
        rows=tuple(rows),
        passed=all(row[4:] == (0, 0) for row in rows),
    )


def _crowd(
    database: str, server_url: str, work: Callable[[Job], list[str]]
) -> tuple[int, int, int, int]:
    with fresh(database, server_url) as (url, home), processes.provider(home) as provider:
        job = Job(folder=home, store_url=url, provider=provider)
        wrong = work(job)
        history = history_of(job, captured(job))
        together = overlaps(history)
        ends = len({record.key for record in job.fronts.of(Ended)})
    for sentence in [*wrong, *together]:
        print(f"{database}: {sentence}", flush=True)
    return ends, len(history.requests), len(wrong), len(together)


def _engines(job: Job) -> list[str]:
    campaign = Campaign(job=job)
    crowd(campaign, clients=CLIENTS, messages=MESSAGES)
    campaign.finish()
    return asyncio.run(verdict(job, ordered=False))


def _programs(job: Job) -> list[str]:
    chats(job, clients=CLIENTS, messages=MESSAGES)
    return asyncio.run(verdict(job, ordered=False, agent=Agent()))
