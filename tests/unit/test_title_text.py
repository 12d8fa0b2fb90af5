"""Titles that are made from a message."""

from __future__ import annotations

import pytest

from clew.features.titles.text import make_fallback_title


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("# A **bold** [plan](http://e.x/a_(b)", "A bold plan"),
        ("read `a_b.py` and *this*, ~~not~~ that", "read a_b.py and this, not that"),
        ("2 * 3 * 4 in __init__.py", "2 * 3 * 4 in __init__.py"),
        ("![a cat](cat.png)", "a cat"),
    ],
)
def test_a_title_has_no_markup(said: str, title: str) -> None:
    assert make_fallback_title(said) == title
