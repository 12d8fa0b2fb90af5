"""The page of contracts is what the tests are, and every contract has one."""

from __future__ import annotations

from tests.contracts_table import CONTRACTS, PAGE, ROOT, page, proofs
from tests.mutations.__main__ import by_contract
from tests.mutations.catalogue import ALL

#: The number of contracts of each part.
PARTS = {"S0": 4, "S1": 18, "S2": 7, "S3": 3, "S4": 7}


def test_the_page_of_contracts_is_up_to_date() -> None:
    again = "python -m tests.contracts_table docs/reference/contracts.md"
    assert PAGE.read_text(encoding="utf-8") == page(), f"write it anew: {again}"


def test_every_contract_is_listed_once_and_has_a_test() -> None:
    ids = [one.id for one in CONTRACTS]
    assert ids == [f"{part}.{n}" for part, count in PARTS.items() for n in range(1, count + 1)]
    assert sorted(proofs()) == sorted(ids)


def test_for_every_contract_two_safeguards_are_known_without_which_it_fails() -> None:
    """``make mutations`` takes each out and shows that the test notices."""
    known = by_contract(ALL)
    assert {name: found for name, found in known.items() if len(found) < 2} == {}


def test_each_safeguard_stands_in_its_file_once() -> None:
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in {m.file for m in ALL}}
    assert [m.name for m in ALL if texts[m.file].count(m.old) != 1] == []
    assert len({m.name for m in ALL}) == len(ALL)
