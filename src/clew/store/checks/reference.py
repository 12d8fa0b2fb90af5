"""
Generator of the reference page of all checks.

``python -m clew.store.checks.reference docs/reference/checks.md``
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.generated_page import write_page
from clew.store.checks.pages import PAGES
from clew.store.checks.registry import CHECKS

if TYPE_CHECKING:
    from clew.store.checks.check import Check

_HEAD = """\
# Checks

<!-- Made by `python -m clew.store.checks.reference docs/reference/checks.md`: do not edit. -->

What `clew fsck` checks, in this order. Where the third column says something and it is surely
right, `--repair` does exactly that, with the names of the rows in the place of the dots; where it
is not, the fourth column says what a person can decide.
[How to check and repair](../how-to/check-and-repair.md) has the steps.

| check | what has to hold | repair | else |
|---|---|---|---|
"""


def render_reference() -> str:
    """Return the page as Markdown."""
    return _HEAD + "".join(map(_render_row, (PAGES, *CHECKS)))


def _render_row(check: Check) -> str:
    repair = (
        "" if check.repair is None else check.repair.format(subject="…", conversation="…", seq="…")
    )
    cells = (f"`{check.name}`", check.description, repair, check.manual_fix or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    write_page(render_reference())
