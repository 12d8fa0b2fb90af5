"""A provider accepts every context, however a history was cut and compacted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.context.cutting import Bench, open_bench, some_runs
from tests.context.histories import histories

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.context.histories import History


@pytest.fixture
async def bench(store_url: str, tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(store_url, tmp_path) as opened:
        yield opened


@settings(
    max_examples=6,
    # To explain a failure, everything is traced for minutes; the run names itself.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, offset=st.integers(0, 200))
async def test_b038_a_history_cut_and_compacted_at_any_index_is_sent_as_providers_take_it(
    bench: Bench, history: History, offset: int
) -> None:
    """Small form of ``make soak contexts``, which makes every run of a history."""
    source, last_seq = await bench.write(history)
    for run in some_runs(last_seq, offset=offset):
        assert (run, await bench.complaints(history, source, run)) == (run, [])
