"""
Long runs under load and faults, one module each: ``run()`` returns its table, or several.

``python -m tests.soak NAME`` runs one and prints that; without a name it lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Result of a soak."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    #: Everything held that had to hold.
    passed: bool

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", _row(self.columns), _row("---" for _ in self.columns)]
        lines += [_row(row) for row in self.rows]
        return "\n".join([*lines, "", "passed" if self.passed else "FAILED"])


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(_text, cells)) + " |"


def _text(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
