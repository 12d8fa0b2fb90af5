"""Fixtures of the contract suite: desks on both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract import invariants
from tests.contract.acting import Overlap
from tests.contract.desk import Desk, desk_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def desk(store_url: str, tmp_path: Path) -> Iterator[Desk]:
    """One connection to a fresh store; every invariant must hold when the test is over."""
    found = desk_at(store_url, tmp_path)
    yield found
    assert found.do(invariants.check) == []
    found.close()


@pytest.fixture
def rival(desk: Desk) -> Iterator[Desk]:
    """Another connection to the same store, in the same simulated world."""
    other = desk.another()
    yield other
    other.close()


@pytest.fixture
def overlap(desk: Desk, rival: Desk) -> Overlap:
    return Overlap(desk, rival)
