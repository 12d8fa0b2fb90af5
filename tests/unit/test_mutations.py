"""Every safeguard that `make mutations` removes is where it says, and has a test."""

from __future__ import annotations

from pathlib import Path

from tests.mutations.catalogue import ALL

ROOT = Path(__file__).parents[2]


def test_each_safeguard_is_found_once_in_its_file() -> None:
    found = {one.name: (ROOT / one.file).read_text().count(one.old) for one in ALL}
    assert {name: times for name, times in found.items() if times != 1} == {}


def test_the_test_of_each_safeguard_exists() -> None:
    missing: list[str] = []
    for mutation in ALL:
        file, _, test = mutation.test.partition("::")
        name = test.partition("[")[0].rpartition("::")[2]
        if test and f"def {name}(" not in (ROOT / file).read_text():
            missing.append(f"{mutation.name}: {mutation.test}")
    assert missing == []
