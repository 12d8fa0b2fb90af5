"""Tests above the store run on the two databases by turns."""

from __future__ import annotations

from tests.in_turn import find_doubled


def _both(test: str) -> list[str]:
    return [test.replace("DB", database) for database in ("sqlite", "postgres")]


def test_each_test_above_the_store_runs_once_and_its_neighbour_on_the_other_database() -> None:
    nodes = [node for n in range(4) for node in _both(f"tests/features/test_a.py::test_{n}[DB-x]")]
    left_out = find_doubled(nodes)
    kept = [node for node in nodes if node not in left_out]
    assert [node[: node.index("[")] for node in kept] == [
        f"tests/features/test_a.py::test_{n}" for n in range(4)
    ]
    first, second = ("sqlite", "postgres") if "[sqlite" in kept[0] else ("postgres", "sqlite")
    assert [first in node for node in kept] == [True, False, True, False]
    assert [second in node for node in kept] == [False, True, False, True]


def test_contracts_run_on_both_databases_and_a_test_of_one_database_is_kept() -> None:
    nodes = [
        *_both("tests/contract/test_leases.py::test_a[DB]"),
        "tests/integration/test_a.py::test_a[sqlite]",
        "tests/integration/test_a.py::test_b",
    ]
    assert find_doubled(nodes) == set()
