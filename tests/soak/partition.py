"""Two hosts, each with a gateway, whose link is cut for 30 seconds and healed."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.integration.postgres_proxy import BlackHole
from tests.killing.cluster import LEASE, Cluster
from tests.killing.hosts import NotAllowed, host
from tests.killing.ways import way
from tests.soak import Table
from tests.soak._stores import fresh, server

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.killing.gateways import Gateways
    from tests.killing.hosts import Host
    from tests.killing.talking import Talk

#: Seconds.
CUT = float(os.environ.get("CLEW_SOAK_CUT", "30"))
TIMES, CONVERSATIONS, LONGEST = 5, 12, 15 * 60


def run() -> Table:
    with server() as server_url, fresh("postgres", server_url) as (url, home), ExitStack() as stack:
        far: Host | None = None
        try:
            far = stack.enter_context(host())
            how, last, cut, heal = "network namespaces", url, far.cut, far.heal
        except NotAllowed as error:
            print(f"no network namespaces here ({error}): a proxy lets nothing through", flush=True)
            how = "a proxy that lets nothing through"
            hole = stack.enter_context(way(url, BlackHole))
            last = hole.url

            def cut() -> None:
                hole.do(lambda proxy: proxy.open.clear())

            def heal() -> None:
                hole.do(lambda proxy: proxy.open.set())

        cluster = Cluster(
            folder=home,
            urls=[url, last],
            store_url=url,
            conversations=CONVERSATIONS,
            messages=100_000,
            patience=5.0,
            far=far,
        )
        answered: list[tuple[int, int]] = []

        async def disturb(_: Gateways, talk: Talk) -> None:
            await _disturb(talk, cut, heal, answered)

        outcome = cluster.run(disturb, within=LONGEST)
    for sentence in outcome.wrong:
        print(sentence, flush=True)
    return Table(
        title=f"Two hosts ({how}), the link cut for {CUT:g} s, lease {LEASE:g} s",
        columns=("cut", "answered while it was cut", "while it was whole after"),
        rows=(
            *((number, *counts) for number, counts in enumerate(answered, 1)),
            ("all answered", outcome.talk.answered, ""),
            ("said again", len(outcome.talk.again), str(dict(Counter(outcome.talk.again)))),
            ("lost, doubled or out of order", len(outcome.wrong), ""),
        ),
        passed=not outcome.wrong and all(count > 0 for counts in answered for count in counts),
    )


async def _disturb(
    talk: Talk, cut: Callable[[], None], heal: Callable[[], None], answered: list[tuple[int, int]]
) -> None:
    for _ in range(TIMES):
        await asyncio.sleep(5)
        whole = talk.answered
        cut()
        await asyncio.sleep(CUT)
        split = talk.answered
        heal()
        await asyncio.sleep(5)
        answered.append((split - whole, talk.answered - split))
        print(answered[-1], flush=True)
    talk.enough = True
