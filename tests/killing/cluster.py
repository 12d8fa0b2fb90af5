"""Several gateways and people who talk to all of them, while something happens to the gateways."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.killing import processes
from tests.killing.child import Job
from tests.killing.gateways import Gateways
from tests.killing.history import overlaps
from tests.killing.hosts import seen_from_there
from tests.killing.talking import PATIENCE, Talk, take_overs
from tests.killing.verdict import captured, history_of, verdict
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Sequence
    from pathlib import Path

    from tests.killing.hosts import Host

    #: Faults of the gateways meanwhile; cancelled once everything is answered.
    Disturbance = Callable[[Gateways, Talk], Coroutine[None, None, None]]

#: Seconds: the shortest lease that there is.
LEASE = 2.0
#: Kills during one message.
_MAX_KILLS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Result of a run."""

    talk: Talk
    kills: int
    #: Seconds of each take-over after a kill.
    taken_over: Sequence[float]
    #: Everything that is wrong, in sentences.
    wrong: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Number of processes, and the address of their store."""

    folder: Path
    #: The ways to the store, one for each gateway.
    urls: Sequence[str]
    #: The way for whoever looks at it in the end.
    store_url: str
    conversations: int
    messages: int
    lease: float = LEASE
    at_once: int = 12
    #: Seconds that a client waits for an answer before it asks another gateway.
    patience: float = PATIENCE
    #: Every n-th request is rebuilt from the store.
    every: int = 1
    #: The last gateway works on this host.
    far: Host | None = None

    def run(
        self,
        disturb: Disturbance,
        *,
        within: float,
    ) -> Outcome:
        """
        Let people talk while ``disturb`` goes on, and judge what was seen.

        :raises TimeoutError: if not everything is answered ``within`` so many seconds
        """
        with processes.provider(self.folder) as provider:
            job = Job(
                folder=self.folder, store_url=self.store_url, provider=provider, lease=self.lease
            )
            with self._gateways(job) as gateways:
                talk = Talk(
                    job=job,
                    urls=gateways.urls(),
                    conversations=self.conversations,
                    messages=self.messages,
                    at_once=self.at_once,
                    patience=self.patience,
                )
                asyncio.run(_talk(gateways, talk, disturb, within))
            cut = self.far is not None
            wrong = asyncio.run(verdict(job, every=self.every, held_back=cut))
            wrong += overlaps(history_of(job, captured(job), held_back=cut))
            return Outcome(
                talk=talk,
                kills=gateways.kills,
                taken_over=take_overs(job.fronts.read()),
                wrong=wrong,
            )

    @contextmanager
    def _gateways(self, job: Job) -> Generator[Gateways]:
        jobs = [replace(job, store_url=url) for url in self.urls]
        with ExitStack() as stack:
            if self.far is not None:
                last = jobs[-1]
                ways = seen_from_there(last.store_url, job.provider)
                store, provider = stack.enter_context(ways)
                jobs[-1] = replace(last, store_url=store, provider=provider, host=self.far.name)
            yield stack.enter_context(Gateways(jobs=jobs))


async def _talk(
    gateways: Gateways,
    talk: Talk,
    disturb: Disturbance,
    within: float,
) -> None:
    async with asyncio.timeout(within):
        disturbing = asyncio.create_task(disturb(gateways, talk))
        try:
            await talk.run()
        finally:
            disturbing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await disturbing


async def kill_one(gateways: Gateways, talk: Talk, *, every: float = 2.0) -> None:
    """
    ``kill -9`` for one of them at random, again and again; it is started anew at once.

    No message is under way at more than two kills: a turn that is killed three times without
    getting further is given up, as it should be. A busy machine is killed less often.
    """
    kills = Counter[str]()

    def all_may_be_killed() -> bool:
        return all(kills[key] < _MAX_KILLS for key in talk.waiting)

    while True:
        await asyncio.sleep(every)
        await wait_until(all_may_be_killed, "answers between two kills")
        kills.update(talk.waiting)
        await asyncio.to_thread(gateways.kill, random.randrange(len(gateways.jobs)))
