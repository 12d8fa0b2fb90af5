"""Decisions of one seed: every fault is drawn here, counted, and can be left out."""

from __future__ import annotations

import hashlib
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

#: The chance of each fault, where one can happen.
RATES = {
    "store unavailable": 0.004,
    "answer of a commit lost": 0.004,
    "slow store": 0.02,
    "late notification": 0.05,
    "repeated notification": 0.05,
    "notification merged into anything": 0.01,
    "request lost": 0.02,
    "reply lost": 0.02,
    "request repeated": 0.03,
    "model error": 0.03,
    "cut stream": 0.03,
    "slow model": 0.03,
    "proof of life lost": 0.002,
}


class Chances:
    """The random numbers of a seed; ``left_out`` names faults by the order of their drawing."""

    def __init__(self, seed: int, left_out: Collection[int] = ()) -> None:
        self.plan, self.order = Random(f"plan {seed}"), Random(f"order {seed}")
        self.random = Random(f"chances {seed}")
        self._left_out = frozenset(left_out)
        self.drawn = 0
        #: The faults that happened: the order of their drawing, and the kind.
        self.happened: list[tuple[int, str]] = []
        self.counts = Counter[str]()
        #: No more faults: what is left has to come to an end.
        self.calm = False
        self._hash = hashlib.blake2b(digest_size=16)
        self.lines: list[str] | None = None

    def fault(self, kind: str) -> bool:
        """Decide whether a fault happens here."""
        if self.calm or self.random.random() >= RATES[kind]:
            return False
        return self.happen(kind)

    def happen(self, kind: str) -> bool:
        """Count a fault that was planned; return false if it is left out."""
        self.drawn += 1
        if self.drawn in self._left_out:
            return False
        self.happened.append((self.drawn, kind))
        self.counts[kind] += 1
        return True

    def delay(self, longest: float) -> float:
        """Draw a delay in seconds, most of them short."""
        return longest * self.random.random() ** 3

    def note(self, line: str) -> None:
        """Add a line to the trace, whose hash tells two runs apart."""
        self._hash.update(line.encode())
        if self.lines is not None:
            self.lines.append(line)

    @property
    def digest(self) -> str:
        """Return the hash of the trace so far."""
        return self._hash.hexdigest()
