"""Every safeguard that `make mutations` removes is where it says, and has a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.catalogue import ALL, Mutation

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.name)
def test_a_safeguard_is_found_once_in_its_file_and_its_test_exists(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text().count(mutation.old) == 1, mutation.old
    file, _, test = mutation.test.partition("::")
    name = test.partition("[")[0].rpartition("::")[2]
    assert not test or f"def {name}(" in (ROOT / file).read_text(), mutation.test
