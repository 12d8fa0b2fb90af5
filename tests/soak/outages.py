"""A database that crashes 20 times under load, and whose synchronous stand-by takes over thrice."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.killing.cluster import Cluster
from tests.soak import Table
from tests.standby import pair
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.killing.gateways import Gateways
    from tests.killing.talking import Talk
    from tests.standby import Pair

RESTARTS = int(os.environ.get("CLEW_SOAK_RESTARTS", "20"))
PROMOTIONS = int(os.environ.get("CLEW_SOAK_PROMOTIONS", "3"))
GATEWAYS, CONVERSATIONS = 2, 12
#: Seconds between two of them, and for all.
PAUSE, LONGEST = 3.0, 15 * 60
#: As people have it: shorter ones are lost with every restart.
LEASE = 15.0


def run() -> Table:
    with pair() as servers, tempfile.TemporaryDirectory(prefix="clew-soak-") as home:
        answered: list[tuple[str, int, int]] = []
        cluster = Cluster(
            folder=Path(home),
            urls=[servers.url] * GATEWAYS,
            store_url=servers.url,
            conversations=CONVERSATIONS,
            messages=100_000,
            lease=LEASE,
        )

        async def disturb(_: Gateways, talk: Talk) -> None:
            await _disturb(servers, talk, answered)

        outcome = cluster.run(disturb, within=LONGEST)
    for sentence in outcome.wrong:
        print(sentence, flush=True)
    again = len(outcome.talk.again)
    return Table(
        title="restart -m immediate, and a promoted synchronous stand-by, under load",
        columns=("what", "times", "messages answered meanwhile", "said again", "lost or doubled"),
        rows=(
            *((name, times, count, "", "") for name, times, count in answered),
            ("all", RESTARTS + PROMOTIONS, outcome.talk.answered, again, len(outcome.wrong)),
        ),
        passed=not outcome.wrong,
    )


async def _disturb(servers: Pair, talk: Talk, answered: list[tuple[str, int, int]]) -> None:
    plan = (
        ("restart -m immediate", RESTARTS, servers.restart),
        ("promotion", PROMOTIONS, servers.promote),
    )
    for name, times, act in plan:
        before = talk.answered
        for _ in range(times):
            await asyncio.sleep(PAUSE)
            said = talk.answered
            await asyncio.to_thread(act)
            wanted = said + CONVERSATIONS
            await wait_until(lambda wanted=wanted: talk.answered >= wanted, "some answers")
        answered.append((name, times, talk.answered - before))
        print(answered[-1], flush=True)
    talk.enough = True
