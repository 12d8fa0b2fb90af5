"""The page of the public Python names says what the code says."""

from __future__ import annotations

from pathlib import Path

import clew
from scripts.python_reference import render_reference

ROOT = Path(__file__).parents[2]


def test_the_page_of_public_names_is_up_to_date_and_has_them_all() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert page == render_reference(), "write it anew: make pages"
    missing = [name for name in clew.__all__ if f"## `{name}`\n" not in page]
    assert missing == ["__version__"]
