"""The state machine for forty times as long as in ``make test``."""

from __future__ import annotations

import os

from tests.contract.desk import desk_at
from tests.contract.test_state_machine import EXAMPLES, explore
from tests.soak import Table
from tests.soak._stores import fresh, server

FACTOR = int(os.environ.get("CLEW_SOAK_FACTOR", "120"))


def run() -> Table:
    with server() as url:
        rows = tuple(
            (database, FACTOR * EXAMPLES[database], _steps(database, url)) for database in EXAMPLES
        )
    return Table(
        title="State machine",
        columns=("database", "examples", "steps, each followed by a check of every invariant"),
        rows=rows,
        passed=True,  # a violation is raised, with the shortest way to it
    )


def _steps(database: str, server_url: str) -> int:
    with fresh(database, server_url) as (url, home):
        desk = desk_at(url, home)
        try:
            return explore(desk, FACTOR * EXAMPLES[database])
        finally:
            desk.close()
