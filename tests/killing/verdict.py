"""The verdict on a campaign: history, invariants of the store, and sent equals stored."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import httpx2

from clew import runtime
from clew.agent.loop import AgentLoop
from clew.engine.fsck import StoreChecker
from clew.store.opening import open_store
from clew.testing.provider import read_log
from tests.contract import invariants
from tests.killing.child import make_agent, make_settings
from tests.killing.history import History, asked_to_summarise, in_time, judge, seen
from tests.killing.killer import Killer
from tests.killing.plans import conversation_of, keys_in
from tests.killing.processes import requests_in
from tests.killing.records import Acknowledged, Effect
from tests.sent import unexplained
from tests.sent.shelves import of_means

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic_ai import Agent

    from clew.store.contract import Store
    from clew.testing.provider import CapturedRequest
    from tests.killing.child import Job


def captured(job: Job) -> list[CapturedRequest]:
    """
    Every request of a campaign, in order.

    One more is made, whose number tells how many there must be in the log.
    """
    body = {"model": "fake-model", "messages": [{"role": "user", "content": "c0m0: "}]}
    answer = httpx2.post(f"{job.provider}/chat/completions", json=body, timeout=60).json()
    last = int(answer["id"].rpartition("-")[2])
    end = time.monotonic() + 10
    while len(found := read_log(requests_in(job.folder))) < last:
        if time.monotonic() > end:
            raise TimeoutError(f"the provider has logged {len(found)} of {last} requests")
        time.sleep(0.01)
    return [request for request in sorted(found, key=lambda r: r.number) if request.number != last]


def history_of(
    job: Job, requests: Iterable[CapturedRequest], *, held_back: bool = False
) -> History:
    """``held_back``: a network may have kept requests for a while."""
    # Other verdicts on the same provider have asked too.
    mine = [request for request in seen(requests) if request.conversation != "c0"]
    summaries = [request for request in mine if asked_to_summarise(request.messages)]
    asked = [request for request in mine if request not in summaries]
    return History(
        fronts=job.fronts.read(),
        effects=job.effects.of(Effect),
        requests=in_time(asked) if held_back else asked,
        summaries=summaries,
    )


def miscounted(history: History, summaries: Mapping[str, int]) -> list[str]:
    """Conversations for which the summariser was not asked as often as expected."""
    asked = Counter(request.conversation for request in history.summaries)
    return [
        f"the summariser was asked {asked[name]} times for {name}, not {wanted}"
        for name, wanted in summaries.items()
        if asked[name] != wanted
    ]


async def verdict(
    job: Job,
    *,
    failed: Iterable[str] = (),
    ordered: bool = True,
    agent: Agent[None, str] | None = None,
    summaries: Mapping[str, int] | None = None,
    every: int = 1,
    held_back: bool = False,
) -> list[str]:
    """
    Everything that is wrong after a campaign.

    ``agent``: which one answered, if not ours; ``summaries``: how often a summary was to be asked
    for, by conversation; ``every``: which requests are made again from the store, all or each n-th;
    ``held_back``: a network may have kept requests for a while.
    """
    requests = captured(job)
    history = history_of(job, requests, held_back=held_back)
    found = judge(history, failed=failed, ordered=ordered)
    found += miscounted(history, summaries or {})
    async with await open_store(job.store_url, home=job.folder) as store:
        broken = [*await store.read(invariants.check), *await _fsck(job, store)]
        agent = agent or make_agent(job, Killer(None, job.fronts, job.folder))
        unequal = await _unequal(job, store, requests[::every], agent)
    return [*found, *broken, *unequal]


async def _fsck(job: Job, store: Store) -> list[str]:
    """Return the findings of ``clew fsck`` in the store as it was left: there must be none."""
    fsck = StoreChecker(store, url=job.store_url, home=job.folder, say=lambda _: None, processes=1)
    report = await fsck.find_problems()
    return [f"fsck: {finding}" for finding in report.findings] + list(report.unchecked)


async def _unequal(
    job: Job, store: Store, requests: Sequence[CapturedRequest], agent: Agent[None, str]
) -> list[str]:
    known = {conversation_of(record.key) for record in job.fronts.of(Acknowledged)}
    asked = [
        request
        for request, brief in zip(requests, seen(requests), strict=True)
        if keys_in(brief.messages) and brief.conversation in known
    ]
    shelf = of_means(runtime.build_services(make_settings(job), store))
    assert shelf is not None
    shelf.loop = AgentLoop(agent, max_steps=20)
    return await unexplained(asked, shelf)
