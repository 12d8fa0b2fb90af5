"""A client that knows only the API description breaks nothing, and the description is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fuzzing import fuzz

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.program import Clew

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_fuzzer_finds_every_answer_as_described_and_the_store_whole(
    clew: Clew, tmp_path: Path
) -> None:
    # ``make soak fuzzer`` makes more requests, on both databases.
    few = ("--phases=fuzzing", "--max-examples=2")
    folder = tmp_path / "fuzzer"
    found = fuzz(clew, *few, store_url="sqlite:///clew.db", seed=1, folder=folder)
    assert not found.complaint, found.complaint
    assert found.errors == ()
    assert found.violations == ()
    assert found.cases > 20
