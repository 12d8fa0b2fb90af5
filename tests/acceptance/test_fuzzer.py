"""A client that knows only the API description breaks nothing, and the description is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fuzzing import fuzz

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.program import Clew

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_fuzzer_finds_every_answer_as_described_and_the_store_whole(
    durable: Clew, tmp_path: Path
) -> None:
    url = durable.env.get("CLEW_STORE__URL", "sqlite:///clew.db")
    few = ("--phases=fuzzing", "--max-examples=2")
    found = fuzz(durable, *few, store_url=url, seed=1, folder=tmp_path / "fuzzer")
    assert not found.complaint, found.complaint
    assert found.errors == ()
    assert found.violations == ()
    assert found.cases > 20
