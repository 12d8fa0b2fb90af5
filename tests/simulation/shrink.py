"""Shrink a seed that fails: fewer deeds and fewer faults that still fail in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record
from tests.simulation.world import run_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.simulation.world import Report, Size


class Shrunk(Record):
    """What is left of a seed; repeats the failure with ``run_seed(seed, size, **kept)``."""

    report: Report
    deeds: frozenset[int]
    left_out: frozenset[int]
    tries: int


class _Shrinker:
    def __init__(self, seed: int, size: Size, *, most: int) -> None:
        self._seed, self._size, self._left = seed, size, most
        self.best: Report | None = None
        self.tries = 0

    def fails(self, deeds: Iterable[int], left_out: Iterable[int]) -> bool:
        """Return whether the seed fails with these deeds and without these faults."""
        if self._left <= 0:
            return False
        self._left -= 1
        self.tries += 1
        report = run_seed(
            self._seed, self._size, left_out=frozenset(left_out), deeds=frozenset(deeds)
        )
        if report.wrong:
            self.best = report
        return bool(report.wrong)


def shrink(seed: int, size: Size, *, most: int = 150) -> Shrunk | None:
    """Return the least of a seed that fails in at most ``most`` runs; ``None`` if it holds."""
    tries = _Shrinker(seed, size, most=most)
    everything = range(size.messages * 3)
    if not tries.fails(everything, ()):
        return None
    deeds = reduce_list(list(everything), lambda kept: tries.fails(kept, ()))
    assert tries.best is not None
    happened = [number for number, _ in _report(tries, deeds).happened]
    faults = reduce_list(happened, lambda kept: tries.fails(deeds, set(happened) - set(kept)))
    left_out = frozenset(happened) - frozenset(faults)
    return Shrunk(report=tries.best, deeds=frozenset(deeds), left_out=left_out, tries=tries.tries)


def _report(tries: _Shrinker, deeds: Iterable[int]) -> Report:
    tries.fails(deeds, ())
    assert tries.best is not None
    return tries.best


def reduce_list(items: list[int], fails: Callable[[list[int]], bool]) -> list[int]:
    """Return a part of a list that still fails: halves, then smaller pieces are left out."""
    size = max(1, len(items) // 2)
    while True:
        start = 0
        while start < len(items):
            rest = items[:start] + items[start + size :]
            if fails(rest):
                items = rest
            else:
                start += size
        if size == 1:
            return items
        size //= 2
