"""Tests above the store run on the two databases by turns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.again import PROVED_ELSEWHERE
from tests.in_turn import find_doubled

ROOT = Path(__file__).parents[2]


def _both(test: str) -> list[str]:
    return [test.replace("DB", database) for database in ("sqlite", "postgres")]


@pytest.mark.parametrize(("folder", "every"), [("features", 4), ("acceptance", 2)])
def test_of_the_tests_above_the_store_each_runs_once_and_some_on_postgresql(
    folder: str, every: int
) -> None:
    nodes = [node for n in range(8) for node in _both(f"tests/{folder}/test_a.py::test_{n}[DB-x]")]
    left_out = find_doubled(nodes)
    kept = [node for node in nodes if node not in left_out]
    assert [node[: node.index("[")] for node in kept] == [
        f"tests/{folder}/test_a.py::test_{n}" for n in range(8)
    ]
    assert ["postgres" in node for node in kept].count(True) == 8 // every


def test_what_is_left_out_exists() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    for pattern in PROVED_ELSEWHERE:
        name = re.sub(r"\\.py.*", "", re.findall(r"test_\w+", pattern)[0])
        is_file = any((ROOT / "tests").rglob(f"{name}.py"))
        assert is_file or any(name in text for text in texts), pattern


def test_contracts_run_on_both_databases_and_a_test_of_one_database_is_kept() -> None:
    nodes = [
        *_both("tests/contract/test_leases.py::test_a[DB]"),
        "tests/integration/test_a.py::test_a[sqlite]",
        "tests/integration/test_a.py::test_b",
    ]
    assert find_doubled(nodes) == set()
