"""Gateways that are killed between and in the rounds of a goal: none is lost, none is doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.features.killed_goals import is_right, pursue_under_kills
from tests.killing.killer import Place

if TYPE_CHECKING:
    from pathlib import Path

#: Two kills for each database; ``make soak goals`` kills gateways at every place on both.
_KILLS = (
    (Place(name="rounds.advance_goal inside", nth=2), Place(name="front.end_by_agent after")),
    (Place(name="rounds.advance_goal after", nth=2), Place(name="judging.store_verdict inside")),
)


@pytest.mark.both_databases
def test_killed_gateways_lose_no_round_and_double_none(tmp_path: Path, store_url: str) -> None:
    places = _KILLS[store_url.startswith("sqlite")]
    found = pursue_under_kills(tmp_path, store_url, places)
    assert (is_right(found), found.kills) == (True, 2), found
