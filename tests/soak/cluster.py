"""Four gateways on one PostgreSQL, 200 conversations at random ones, one killed every 2 seconds."""

from __future__ import annotations

import os

from tests.killing.cluster import LEASE, Cluster, kill_one
from tests.soak import Table
from tests.soak._stores import fresh, server

GATEWAYS = 4
CONVERSATIONS = int(os.environ.get("CLEW_SOAK_CONVERSATIONS", "200"))
MESSAGES = 20
#: Seconds.
LONGEST = 8 * 60


def run() -> Table:
    with server() as server_url, fresh("postgres", server_url) as (url, home):
        cluster = Cluster(
            folder=home,
            urls=[url] * GATEWAYS,
            store_url=url,
            conversations=CONVERSATIONS,
            messages=MESSAGES,
        )
        outcome = cluster.run(kill_one, within=LONGEST)
    for sentence in outcome.wrong:
        print(sentence, flush=True)
    taken = sorted(outcome.taken_over)
    rows = (
        ("messages", CONVERSATIONS * MESSAGES),
        ("answered once, in order", outcome.talk.answered),
        ("gateways killed", outcome.kills),
        ("messages said again", len(outcome.talk.again)),
        ("turns taken over", len(taken)),
        ("take-over, seconds: median", f"{taken[len(taken) // 2]:.2f}"),
        ("take-over, seconds: slowest", f"{taken[-1]:.2f}"),
        ("violations", len(outcome.wrong)),
    )
    return Table(
        title=f"{GATEWAYS} gateways, one killed every 2 s, lease {LEASE:g} s",
        columns=("what", "count"),
        rows=rows,
        passed=not outcome.wrong and taken[-1] <= LEASE + 1,
    )
