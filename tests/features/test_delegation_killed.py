"""Tasks survive kill -9 at each point: one child, one answer, nothing done twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.features.killed_tasks import POINTS, Gateways, kill_in_a_delegation

if TYPE_CHECKING:
    from pathlib import Path

_NAMES = [name for name, _, _ in POINTS]
#: With one gateway and the model waiting, and with two and a task in the background.
_ON_POSTGRES = (2, 4)


@pytest.mark.parametrize("point", range(len(POINTS)), ids=_NAMES)
def test_a_killed_gateway_leaves_one_child_with_one_answer(tmp_path: Path, point: int) -> None:
    check(tmp_path, f"sqlite:///{tmp_path}/clew.db", point, background=point % 2 == 1)


@pytest.mark.postgres
@pytest.mark.parametrize("point", _ON_POSTGRES, ids=[_NAMES[point] for point in _ON_POSTGRES])
def test_and_so_it_does_on_postgresql(tmp_path: Path, postgres_url: str, point: int) -> None:
    check(tmp_path, postgres_url, point, background=point % 4 == 0)


def check(home: Path, store_url: str, point: int, *, background: bool) -> None:
    # ``make soak delegation`` kills in each way at each point; here they take turns.
    gateways: Gateways = "two" if point % 3 == 1 else "one"
    found = kill_in_a_delegation(
        home, store_url, point, seed=point, background=background, gateways=gateways
    )
    assert found.is_right, found
    assert found.kills <= 1
