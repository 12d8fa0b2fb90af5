"""The page of quirks says what the table says."""

from __future__ import annotations

from pathlib import Path

from clew.testing.provider.quirks.reference import render_page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "provider-quirks.md"


def test_the_page_is_made_from_the_table() -> None:
    again = "python -m clew.testing.provider.quirks.reference docs/reference/provider-quirks.md"
    assert PAGE.read_text(encoding="utf-8") == render_page(), f"make it again: {again}"
