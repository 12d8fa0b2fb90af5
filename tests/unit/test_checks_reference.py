"""The page of checks says what the checks say."""

from __future__ import annotations

from pathlib import Path

from clew.store.checks.reference import render_reference
from clew.store.checks.registry import CHECKS, CHECKS_BY_NAME

ROOT = Path(__file__).parents[2]


def test_the_page_of_all_checks_is_up_to_date() -> None:
    page = (ROOT / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    again = "python -m clew.store.checks.reference docs/reference/checks.md"
    assert page == render_reference(), f"write it anew: {again}"


def test_every_check_has_a_name_of_its_own_and_a_way_out() -> None:
    assert len(CHECKS_BY_NAME) == len(CHECKS)
    for check in CHECKS:
        assert check.description.endswith("."), check.name
        assert (check.repair is None) == (check.repair_fn is None), check.name
        assert check.repair or check.manual_fix, check.name
        assert not (check.repair or "").endswith("."), check.name
