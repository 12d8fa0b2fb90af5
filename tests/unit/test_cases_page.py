"""The page of cases: each once, each with tests that exist or with what it waits for."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cases.md"
ROWS = re.findall(
    r"^\| (B\d{3}) \| (.+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
)
TEST = re.compile(r"\[([^]]+)\]\(([^)]+)\)")


def test_each_case_is_listed_once_and_says_what_covers_it_or_what_it_waits_for() -> None:
    ids = [case for case, _, _ in ROWS]
    assert len(ids) == len(set(ids)) > 100
    for case, _, covered in ROWS:
        assert TEST.search(covered) or re.fullmatch(r"waits for \w.+", covered), case


def test_each_test_that_covers_a_case_is_there() -> None:
    for case, _, covered in ROWS:
        for title, link in TEST.findall(covered):
            text = (PAGE.parent / link).read_text(encoding="utf-8")
            assert f"def test_{title.replace(' ', '_')}(" in text, (case, title)


def test_each_case_that_a_test_names_in_its_own_name_is_on_the_page() -> None:
    covered = {case: tests for case, _, tests in ROWS}
    for path in Path(__file__).parents[1].rglob("test_*.py"):
        for name in re.findall(r"def test_(b\d{3}_\w+)\(", path.read_text(encoding="utf-8")):
            for case in re.findall(r"b(\d{3})(?=_)", name):
                assert name.replace("_", " ") in covered[f"B{case}"], name
