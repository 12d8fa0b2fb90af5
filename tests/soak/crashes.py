"""
Turns that take their process with them, and turns whose process is drained: each on both databases.

``CLEW_SOAK_ROUNDS`` rounds.
"""

from __future__ import annotations

import os
import traceback
from collections import Counter
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from tests.acceptance import test_turns_that_crash as crashing
from tests.killing import processes
from tests.killing.child import Job
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROUNDS = int(os.environ.get("CLEW_SOAK_ROUNDS", "10"))
_DRAINED = crashing.test_drains_while_a_turn_is_being_taken_up_do_not_count_as_crashes
CASES: Mapping[str, Callable[[Job], None]] = {
    "killed each time": (
        crashing.test_a_turn_that_kills_its_process_each_time_ends_as_failed_when_resumed_a_third_time
    ),
    "a call that may have run": (
        crashing.test_a_call_that_may_have_run_is_not_marked_cancelled_when_the_turn_fails
    ),
    "outlasts its lease": crashing.test_a_turn_that_outlasts_its_lease_each_time_ends_as_failed,
    "five drains": crashing.test_five_drains_in_a_row_do_not_end_a_turn,
    **{
        f"drained {moment} it is taken up": partial(_DRAINED, moment=moment)
        for moment in ("before", "inside", "after")
    },
}


def run() -> Table:
    wrong = Counter[tuple[str, str]]()
    with server() as server_url:
        for number in range(ROUNDS):
            for (name, case), database in product(CASES.items(), DATABASES):
                wrong[name, database] += not _holds(database, server_url, case)
            print(f"round {number + 1} of {ROUNDS}: wrong {wrong.total()}", flush=True)
    return Table(
        title=f"turns that crash, {ROUNDS} times each: wrong",
        columns=("turn", *DATABASES),
        rows=tuple((name, *(wrong[name, database] for database in DATABASES)) for name in CASES),
        passed=not wrong.total(),
    )


def _holds(database: str, server_url: str, case: Callable[[Job], None]) -> bool:
    with fresh(database, server_url) as (url, home), processes.provider(home) as provider:
        try:
            case(Job(folder=home, store_url=url, provider=provider))
        except AssertionError:
            traceback.print_exc()
            return False
    return True
