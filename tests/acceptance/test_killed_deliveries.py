"""Messages and answers on a channel survive kill -9, judged by what people see."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from clew.testing.telegram import FaultInjector
from tests.acceptance.program import until
from tests.channels import serving
from tests.channels.fakes import FAKES
from tests.channels.judging import answer_to, judge
from tests.channels.killed import POINTS, SHOWN_POINTS, Row
from tests.channels.serving import Serve
from tests.databases import ON_POSTGRES
from tests.killing import processes
from tests.killing.records import Ready

if TYPE_CHECKING:
    from pathlib import Path


#: Platforms that are tested on SQLite; Telegram is tested on PostgreSQL.
#: ``make soak kills`` and ``make soak channels`` have all of them on both.
OTHERS = sorted(FAKES.keys() - {"telegram"})
#: Platforms on which no answer is shown while it is made.
WITHOUT_EDITS = ("webhook", "whatsapp", "signal")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("store_url", ON_POSTGRES, indirect=True)
def test_a_kill_around_a_delivery_that_is_marked_sending_is_made_good(
    store_url: str, tmp_path: Path
) -> None:
    """B070, B080: the design's row of crashes, place by place, with one restart each."""
    kill_around_a_delivery("telegram", store_url, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("platform", OTHERS)
def test_a_kill_around_a_delivery_is_made_good_on_every_platform(
    tmp_path: Path, platform: str
) -> None:
    """B070, B080: where a platform remembers or can be asked, people see nothing of it."""
    kill_around_a_delivery(platform, f"sqlite:///{tmp_path}/clew.db", tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("store_url", ON_POSTGRES, indirect=True)
def test_a_kill_while_an_answer_is_shown_leaves_no_beginning_beside_it_unmarked(
    store_url: str, tmp_path: Path
) -> None:
    kill_while_an_answer_is_shown("telegram", store_url, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("platform", [name for name in OTHERS if name not in WITHOUT_EDITS])
def test_a_kill_while_an_answer_is_shown_leaves_nothing_where_the_platform_can_tell(
    tmp_path: Path, platform: str
) -> None:
    kill_while_an_answer_is_shown(platform, f"sqlite:///{tmp_path}/clew.db", tmp_path)


def kill_while_an_answer_is_shown(platform: str, url: str, folder: Path) -> None:
    with FAKES[platform](None) as fake:
        row = Row(fake, folder=folder, store_url=url, shows=True)
        for place in SHOWN_POINTS:
            row.kill_at(place)
        row.finish()
        found = {place: row.seen(place) for place in SHOWN_POINTS}
    assert found == {place: row.wanted(place) for place in SHOWN_POINTS}


def kill_around_a_delivery(platform: str, url: str, folder: Path) -> None:
    with FAKES[platform](None) as fake:
        row = Row(fake, folder=folder, store_url=url)
        for place in POINTS:
            row.kill_at(place)
        row.finish()
        found = {place: row.seen(place) for place in POINTS}
    assert found == {place: row.wanted(place) for place in POINTS}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("store_url", ON_POSTGRES, indirect=True)
def test_b071_b072_b076_kills_at_any_moment_of_a_bad_day_lose_and_double_nothing(
    store_url: str, tmp_path: Path
) -> None:
    """The small form of ``make soak channels``; what is said while nobody runs is answered."""
    kill_on_a_bad_day("telegram", store_url, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("platform", OTHERS)
def test_kills_on_a_bad_day_lose_and_double_nothing_on_every_platform(
    tmp_path: Path, platform: str
) -> None:
    kill_on_a_bad_day(platform, f"sqlite:///{tmp_path}/clew.db", tmp_path)


def kill_on_a_bad_day(platform: str, url: str, folder: Path) -> None:
    faults = FaultInjector(
        cut=0.05, lost=0.05, throttled=0.05, duplicated=0.1, reordered=0.3, seed=7
    )
    chance = random.Random(7)
    said = {user: [f"{n} of {user}" for n in range(2)] for user in range(1, 9)}
    with FAKES[platform](faults) as fake:
        job = Serve(
            folder=folder,
            store_url=url,
            channel=fake.name,
            settings=fake.settings,
            port=fake.port,
        )
        for n in range(2):
            for user, texts in said.items():
                fake.say(texts[n], user=user)
            process = processes.fork(serving.main, job)
            time.sleep(chance.uniform(0.6, 1.2))
            process.kill()
            processes.ended(process)
        process = processes.fork(serving.main, job)
        # An earlier one may have answered everything: this one may not even have begun to listen.
        until(lambda: any(ready.pid == process.pid for ready in job.log.of(Ready)))
        until(lambda: not judge(fake.seen(), said).wrong)
        process.terminate()
        assert processes.ended(process) == 0
        assert judge(fake.seen(), said).wrong == []


def test_the_judge_sees_what_is_wrong() -> None:
    from tests.channels.fakes import Seen  # noqa: PLC0415  (only here)

    said = {1: ["a", "b"]}
    right = [Seen(1, answer_to("a")), Seen(1, answer_to("b"))]
    assert judge(right, said).wrong == []
    assert judge([*right, Seen(1, f"(may be a repeat)\n{answer_to('b')}")], said).wrong == []
    for seen in (right[:1], right[::-1], [*right, right[0]], [*right, Seen(1, "what?")]):
        assert judge(seen, said).wrong
