"""Fixtures of the contract suite: desks on both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import postgres
from tests.contract import invariants
from tests.contract.acting import Overlap
from tests.contract.desk import Desk, PostgresDesk, SqliteDesk

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def sqlite_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    found = SqliteDesk(tmp_path_factory.mktemp("desk"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def postgres_desk(postgres_server: str) -> Iterator[Desk]:
    with postgres.database(postgres_server) as url:
        found = PostgresDesk(url)
        yield found
        found.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A connection to an empty store; every invariant must hold when the test is over."""
    found: Desk = request.getfixturevalue(f"{request.param}_desk")
    found.fresh()
    yield found
    assert found.do(invariants.check) == []


@pytest.fixture
def rival(desk: Desk) -> Iterator[Desk]:
    """Another connection to the same store, in the same simulated world."""
    other = desk.another()
    yield other
    other.close()


@pytest.fixture
def overlap(desk: Desk, rival: Desk) -> Overlap:
    return Overlap(desk, rival)
