"""Kill processes at each point 50 times, and 300 times at any moment, on both databases."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from clew.testing import FakeProvider
from tests.channels.fakes import FAKES
from tests.channels.killed import POINTS as SENDING
from tests.channels.killed import SHOWN_POINTS as SHOWN
from tests.channels.killed import Row
from tests.killing import plans, processes
from tests.killing.campaign import KILLED, Campaign
from tests.killing.child import Job
from tests.killing.history import resume_times
from tests.killing.killed_ends import POINTS as ENDS
from tests.killing.killed_ends import KilledEnds, start_and_note
from tests.killing.points import IN_MID_TURN, MIXED, POINTS
from tests.killing.process_gateway import GatewayJob
from tests.killing.verdict import verdict
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.killing.killer import Place

#: Kills at each point, and at random moments; in rounds of ``BATCH``.
ROUNDS = int(os.environ.get("CLEW_SOAK_ROUNDS", "50"))
RANDOM, BATCH = int(os.environ.get("CLEW_SOAK_RANDOM", "300")), 30
#: Seconds after a process was forked in which it is killed.
WINDOW = 0.5
ANY = "any moment"
#: Platforms on which the beginning of an answer is shown.
SHOWING = [platform for platform in FAKES if platform != "webhook"]


class Tally:
    """Result of the rounds of one database."""

    def __init__(self) -> None:
        self.kills = Counter[str]()
        self.resumed: list[float] = []
        self.wrong: list[str] = []

    def round(self, database: str, server_url: str, kill: Callable[[Campaign], None]) -> None:
        """One round on a store of its own."""
        with fresh(database, server_url) as (url, home), processes.provider(home) as provider:
            job = Job(folder=home, store_url=url, provider=provider, window=plans.WINDOW)
            campaign = Campaign(job=job)
            kill(campaign)
            campaign.finish()
            wrong = asyncio.run(verdict(job, summaries=campaign.summaries))
            self.kills += campaign.kills
            self.resumed += resume_times(campaign.job.fronts.read())
        self._tell(database, wrong)

    def deliveries(self, database: str, server_url: str) -> None:
        """Once at every place around a delivery, and while an answer is shown, on each platform."""
        for platform in FAKES:
            self._deliveries(database, server_url, platform, shows=False)
        for platform in SHOWING:
            self._deliveries(database, server_url, platform, shows=True)

    def _deliveries(self, database: str, server_url: str, platform: str, *, shows: bool) -> None:
        places, name = (SHOWN, showing) if shows else (SENDING, sending)
        with fresh(database, server_url) as (url, home), FAKES[platform](None) as fake:
            row = Row(fake, folder=home, store_url=url, shows=shows)
            for place in places:
                row.kill_at(place)
                self.kills[name(place, platform)] += 1
            row.finish()
            found = {place: row.seen(place) for place in places}
            wrong = [
                f"{platform}: {place}: {seen}"
                for place, seen in found.items()
                if seen != row.wanted(place)
            ]
        self._tell(database, wrong)

    def commands(self, database: str, server_url: str) -> None:
        """Once at every place around the start and the end of a command in the background."""
        with fresh(database, server_url) as (url, home), FakeProvider(start_and_note) as provider:
            ends = KilledEnds(
                job=GatewayJob(home=home, store_url=url, provider=provider.openai_url)
            )
            for place in ENDS:
                ends.kill_at(place)
                self.kills[ending(place)] += 1
            wrong = ends.find_wrong()
        self._tell(database, wrong)

    def _tell(self, database: str, wrong: Sequence[str]) -> None:
        for sentence in wrong:
            print(f"{database}: {sentence}", flush=True)
        self.wrong += wrong


def sending(place: str, platform: str) -> str:
    """The name of a row."""
    return f"delivery marked sending: {place}, {platform}"


def ending(place: Place) -> str:
    """The name of a row."""
    nth = f" ({place.nth})" if place.nth > 1 else ""
    return f"command in the background: {place.name}{nth}"


def showing(place: str, platform: str) -> str:
    """The name of a row."""
    return f"answer that is shown: {place}, {platform}"


def at_each_point(campaign: Campaign) -> None:
    """Once at every point."""
    for point in POINTS:
        campaign.kill_at(point)


def at_any_moment(campaign: Campaign) -> None:
    """``BATCH`` times; every third process lives, so that no turn is given up as hopeless."""
    while campaign.kills[ANY] < BATCH:
        for plans_of_one in (MIXED, IN_MID_TURN):
            job = replace(campaign.job, says=campaign.says(plans_of_one))
            process = processes.start(job)
            time.sleep(random.uniform(0, WINDOW))
            process.kill()
            campaign.kills[ANY] += processes.ended(process) == KILLED
        campaign.undisturbed(campaign.job)


def run() -> Table:
    tallies = {database: Tally() for database in DATABASES}
    with server() as url:
        for database, tally in tallies.items():
            for number in range(ROUNDS):
                tally.round(database, url, at_each_point)
                tally.deliveries(database, url)
                tally.commands(database, url)
                print(f"{database}: round {number + 1} of {ROUNDS}", flush=True)
            while tally.kills[ANY] < RANDOM:
                tally.round(database, url, at_any_moment)
    around = [sending(place, platform) for platform in FAKES for place in SENDING]
    around += [showing(place, platform) for platform in SHOWING for place in SHOWN]
    around += [ending(place) for place in ENDS]
    names = [*(point.name for point in POINTS), *around, ANY]
    counts = [(name, *(tally.kills[name] for tally in tallies.values())) for name in names]
    totals = ("all", *(tally.kills.total() for tally in tallies.values()))
    wrong = ("violations", *(len(tally.wrong) for tally in tallies.values()))
    median = ("resumed, seconds after ready: median", *map(_middle, tallies.values()))
    slowest = ("resumed: slowest", *(f"{max(t.resumed):.3f}" for t in tallies.values()))
    return Table(
        title=f"kill -9 at {len(POINTS) + len(around)} points and at any moment",
        columns=("killed at", *DATABASES),
        rows=(*counts, totals, wrong, median, slowest),
        passed=not any(tally.wrong for tally in tallies.values()),
    )


def _middle(tally: Tally) -> str:
    return f"{sorted(tally.resumed)[len(tally.resumed) // 2]:.3f}"
