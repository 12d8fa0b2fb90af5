"""Figures that a measurement prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One number, what it should be, and how it compares with something measured beside it."""

    name: str
    value: float
    unit: str
    #: ``None`` where it is only printed.
    target: float | None = None
    #: True if more is better.
    at_least: bool = False
    #: Against ``baseline`` of the same run.
    ratio: float | None = None
    baseline: str = ""

    @property
    def reached(self) -> bool:
        if self.target is None:
            return True
        return self.value >= self.target if self.at_least else self.value <= self.target

    def cells(self) -> tuple[str, str, str, str]:
        sign = ">=" if self.at_least else "<="
        target = "" if self.target is None else f"{sign} {number(self.target)}"
        missed = "" if self.reached else "  MISSED"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}x {self.baseline}"
        return self.name, f"{number(self.value)} {self.unit}", target + missed, ratio


def number(value: float) -> str:
    """Three digits that count, thousands apart."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table(figures: Iterable[Figure]) -> str:
    """Return the figures as aligned columns."""
    rows = [("figure", "measured", "target", "against"), *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value that ``share`` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
