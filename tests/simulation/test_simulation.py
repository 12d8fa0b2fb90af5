"""A few seeds of the simulation; ``make soak simulation`` has many, and its mutations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.contract.desk import PostgresDesk, SqliteDesk
from tests.simulation.comparison import replay
from tests.simulation.seeds import FAILED
from tests.simulation.shrink import reduce_list

if TYPE_CHECKING:
    from pathlib import Path


def simulate(*args: str) -> subprocess.CompletedProcess[str]:
    """Run the simulation in a process of its own, whose hashes are always the same."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *args],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_gateways_that_crash_pause_and_lose_answers_keep_every_invariant_and_a_seed_repeats() -> (
    None
):
    done = simulate("--seed", "1", "--messages", "25", "--turns", "30", "--twice", "--every", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["turns"] >= 30
    assert {"crash in the middle", "store unavailable", "request repeated"} <= told["faults"].keys()


@pytest.mark.parametrize("seed", FAILED)
def test_a_seed_that_failed_once_holds(seed: int) -> None:
    done = simulate("--seed", str(seed))
    assert done.returncode == 0, f"{FAILED[seed]}:\n{done.stdout}{done.stderr}"


@pytest.mark.both_databases
def test_the_store_of_the_simulation_does_what_a_real_one_does(
    store_url: str, tmp_path: Path
) -> None:
    desk = SqliteDesk(tmp_path) if store_url.startswith("sqlite") else PostgresDesk(store_url)
    try:
        compared, unequal = replay(desk, seed=1, messages=12)
    finally:
        desk.close()
    assert not unequal, "\n".join(unequal[:5])
    assert compared > 100


def test_what_fails_is_shrunk_to_what_it_takes() -> None:
    assert reduce_list([*range(40)], lambda kept: {7, 23} <= set(kept)) == [7, 23]
