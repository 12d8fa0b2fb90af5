"""Double text: what becomes of a message that comes while a turn is unfinished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.store.sqlite.store import SqliteStore
from tests.line import double_text
from tests.line.double_text import MOMENTS, RULES
from tests.line.sweep import ACTS, Sweep
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.core.double_text import DoubleText
    from tests.line.sweep import Act, Run
    from tests.line.world import World


@pytest.fixture
async def world(store_url: str, tmp_path: Path) -> AsyncGenerator[World]:
    async with open_world(store_url, tmp_path) as found:
        yield found
        assert await found.check() == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.value)
async def test_each_moment_is_as_the_table_says(world: World, rule: DoubleText) -> None:
    found = {moment.name: await double_text.play(world, rule, moment) for moment in MOMENTS}
    assert found == {moment.name: double_text.expected(rule, moment) for moment in MOMENTS}


@pytest.mark.parametrize("act", ACTS, ids=str)
async def test_an_action_at_any_point_of_a_turn_follows_the_table(world: World, act: Act) -> None:
    """A part of the points; ``make soak double-text`` comes to each."""
    place = ACTS.index(act)
    sweep = Sweep(world, streamed=place % 2 == 1)
    stride = 10 if isinstance(world.store.inner, SqliteStore) else 22
    runs: list[Run] = []
    while run := await sweep.run(act, 1 + place % stride + len(runs) * stride):
        runs.append(run)
    assert [(run.point, run.complaints) for run in runs if run.complaints] == []
    assert len(runs) > 3
    assert world.left_over() == []


async def test_an_action_during_a_compaction_follows_the_table(
    world: World,
) -> None:
    """A part of the points; ``make soak double-text`` comes to each."""
    wrong: list[object] = []
    for place, act in enumerate(ACTS):
        sweep = Sweep(world, streamed=place % 2 == 0, compacts=True)
        points = await sweep.compaction()
        assert len(points) > 10
        for point in points[place % 8 :: 8]:
            before = world.compacting.summaries
            run = await sweep.run(act, point)
            assert run is not None
            wrong += [(act, run.point, run.complaints)] * bool(run.complaints)
            # An interrupted compaction is not started again.
            assert world.compacting.summaries - before <= 1
    assert wrong == []
