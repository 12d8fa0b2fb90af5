"""Several gateways on one PostgreSQL, some of which are killed, cut off, or lose their database."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from tests import postgres
from tests.integration.postgres_proxy import BlackHole, CuttingProxy
from tests.killing.cluster import LEASE, Cluster, kill_one
from tests.killing.ways import way
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.killing.gateways import Gateways
    from tests.killing.talking import Talk

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(900)]


def test_of_four_gateways_one_is_killed_every_two_seconds_and_each_message_is_answered_once(
    postgres_url: str, tmp_path: Path
) -> None:
    """``make soak cluster`` has 80 times as many messages."""
    cluster = Cluster(
        folder=tmp_path,
        urls=[postgres_url] * 4,
        store_url=postgres_url,
        conversations=12,
        messages=4,
        every=8,
    )
    outcome = cluster.run(kill_one, within=280)
    assert outcome.wrong == []
    assert outcome.talk.answered == 48
    slowest = max(outcome.taken_over, default=0.0)
    sys.stdout.write(
        f"kills: {outcome.kills}, turns taken over: {len(outcome.taken_over)}, the slowest after "
        f"{slowest:.2f} s of lease {LEASE:g} s\n"
    )


def test_a_database_that_crashes_twice_and_loses_a_commit_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    """``make soak outages`` has 20 crashes, and 3 promotions of a stand-by."""
    with (
        postgres.home() as home,
        postgres.database(home.url()) as url,
        way(url, CuttingProxy) as cut,
    ):

        async def disturb(_: Gateways, talk: Talk) -> None:
            for _restart in range(2):
                await _go_on(talk)
                await asyncio.to_thread(
                    home.control, "restart", "--mode", "immediate", *log_of(home)
                )
            await _go_on(talk)
            cut.do(lambda proxy: proxy.plan.append("swallow"))
            await _go_on(talk)
            talk.enough = True

        cluster = Cluster(
            folder=tmp_path,
            urls=[url, cut.url],
            store_url=url,
            conversations=6,
            messages=1000,
            lease=15,
        )
        outcome = cluster.run(disturb, within=150)
    assert outcome.wrong == []
    assert outcome.talk.answered > 20


async def _go_on(talk: Talk) -> None:
    """Wait until some more is answered."""
    before = talk.answered
    await wait_until(lambda: talk.answered >= before + 6, "six more answers")


def log_of(home: postgres.Home) -> tuple[str, str]:
    return "--log", str(home.folder / "server.log")


def test_a_gateway_that_is_cut_off_past_its_lease_answers_nothing_twice_and_loses_nothing(
    postgres_url: str, tmp_path: Path
) -> None:
    """``make soak partition`` cuts the link of another host for 30 seconds."""
    with way(postgres_url, BlackHole) as hole:

        async def disturb(_: Gateways, talk: Talk) -> None:
            await _go_on(talk)
            hole.do(lambda proxy: proxy.open.clear())
            await asyncio.sleep(LEASE + 1)
            hole.do(lambda proxy: proxy.open.set())
            await _go_on(talk)
            talk.enough = True

        cluster = Cluster(
            folder=tmp_path,
            urls=[postgres_url, hole.url],
            store_url=postgres_url,
            conversations=6,
            messages=1000,
            patience=2.0,
        )
        outcome = cluster.run(disturb, within=150)
    assert outcome.wrong == []
    assert outcome.talk.again
