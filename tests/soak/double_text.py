"""
Double text: each rule at each moment, and all that can be done to a turn at each of its points.

A point is a place where a turn waits: each call of the store (before it, while it is under way,
after it), each piece of the model's answer, the beginning and the end of each tool.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from typing import TYPE_CHECKING

import structlog

from clew.core.double_text import DoubleText
from tests.line import double_text
from tests.line.double_text import MOMENTS, RULES
from tests.line.sweep import ACTS, Sweep
from tests.line.world import open_world
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from pathlib import Path

    from tests.line.double_text import Moment
    from tests.line.sweep import Act, Run
    from tests.line.world import World

_COLUMNS = ("a answered", "a cancelled", "b a turn", "b steered", "b refused", "wrong")


def run() -> Table:
    """Print the table of moments; return that of points."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    rows: list[tuple[object, ...]] = []
    right = True
    with server() as server_url:
        for database in DATABASES:
            with fresh(database, server_url) as (url, home):
                moments = asyncio.run(_moments(database, url, home))
            print(moments.markdown(), end="\n\n")
            right = right and moments.passed
            with fresh(database, server_url) as (url, home):
                rows += asyncio.run(_points(database, url, home))
    return Table(
        title="Acts at every point of a turn",
        columns=("database", "model", "act", "points", *_COLUMNS),
        rows=tuple(rows),
        passed=right and all(row[-1] == 0 for row in rows),
    )


async def _moments(database: str, url: str, home: Path) -> Table:
    async with open_world(url, home) as world:
        rows = [
            (rule.value, *[await _moment(world, rule, moment) for moment in MOMENTS])
            for rule in RULES
        ]
        wrong = await world.check()
    return Table(
        title=f"Double text on {database}: what became of b / of the turn that ran",
        columns=("rule", *[moment.name for moment in MOMENTS]),
        rows=tuple(rows),
        passed=not wrong and not any("not" in str(cell) for row in rows for cell in row),
    )


async def _moment(world: World, rule: DoubleText, moment: Moment) -> str:
    found = await double_text.play(world, rule, moment)
    expected = double_text.expected(rule, moment)
    became = f"{found.second.value} / {found.first.value}"
    return became if found == expected else f"{became}, not as expected: {found}"


async def _points(database: str, url: str, home: Path) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    async with open_world(url, home) as world:
        for streamed, compacts, act in itertools.product((False, True), (False, True), ACTS):
            sweep = Sweep(world, streamed=streamed, compacts=compacts)
            model = ("streamed" if streamed else "whole") + (", compacted" if compacts else "")
            rows.append((database, model, *await _act(sweep, act)))
        rows += [(database, "-", wrong, 0, *[0] * 5, 1) for wrong in await world.check()]
    return rows


async def _act(sweep: Sweep, act: Act) -> tuple[object, ...]:
    counts, points = Counter[str](), 0
    while (run := await sweep.run(act, points + 1)) is not None:
        points += 1
        counts.update(_counted(run))
        for complaint in run.complaints:
            print(f"{act} at point {points} ({run.point}): {complaint}")
    name = act.value if isinstance(act, DoubleText) else act
    return (name, points, *[counts[column] for column in _COLUMNS])


def _counted(run: Run) -> list[str]:
    outcome = None if run.turn is None else run.turn.outcome
    first = "a cancelled" if outcome is None else f"a {outcome.value}"
    became = {"turn": "b a turn", "steered": "b steered", "rejected": "b refused"}
    second = [] if run.second is None else [became.get(run.second.value, run.second.value)]
    return [first, *second, *["wrong"] * bool(run.complaints)]
