"""The page of contracts is what the tests are, and every contract has one."""

from __future__ import annotations

from tests.contracts_table import CONTRACTS, PAGE, page, proofs

#: How many contracts each part has.
PARTS = {"S0": 4, "S1": 18, "S2": 7, "S3": 3, "S4": 7}


def test_the_page_of_contracts_is_up_to_date() -> None:
    again = "python -m tests.contracts_table docs/reference/contracts.md"
    assert PAGE.read_text(encoding="utf-8") == page(), f"write it anew: {again}"


def test_every_contract_is_listed_once_and_has_a_test() -> None:
    ids = [one.id for one in CONTRACTS]
    assert ids == [f"{part}.{n}" for part, count in PARTS.items() for n in range(1, count + 1)]
    assert sorted(proofs()) == sorted(ids)
