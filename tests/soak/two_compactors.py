"""Two processes compact one conversation 100 times, and one is killed at each place in turn."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING

import structlog

from tests.killing.compactors import PLACES, compacted_by_two
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from tests.killing.compactors import Pair

ROUNDS = 104


def run() -> Table:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    places = list(itertools.islice(itertools.cycle(PLACES), ROUNDS))
    pairs: list[Pair] = []
    with server() as server_url:
        for database in DATABASES:
            with fresh(database, server_url) as (url, home):
                pairs.append(asyncio.run(compacted_by_two(url, home, places)))
            for complaint in pairs[-1].complaints:
                print(f"{database}: {complaint}")
    wanted = sum(PLACES[place] for place in places)
    rows = [
        *(
            (f"killed: {place}", *(pair.kills[place] for pair in pairs))
            for place in PLACES
            if place
        ),
        ("compactions by both at once", *(ROUNDS for _ in pairs)),
        ("successors", *(pair.rotations for pair in pairs)),
        (f"summaries, {wanted} where one dies with its own", *(pair.summaries for pair in pairs)),
        ("violations", *(len(pair.complaints) for pair in pairs)),
    ]
    return Table(
        title=f"Two processes compact one conversation {ROUNDS} times",
        columns=("what", *DATABASES),
        rows=tuple(rows),
        passed=not any(pair.complaints for pair in pairs),
    )
