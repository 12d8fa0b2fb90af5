"""The facts that a query is about, best first (BM25)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clew.core.search import fold_text, split_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.features.memory.facts import Fact

#: Saturation by repeated words, and weight of the length (the usual values of BM25).
_K, _B = 1.2, 0.75
#: Characters by which words of one family are told, and their weight beside the same word.
_STEM, _STEM_WEIGHT = 5, 0.5


class FactIndex:
    """Words of the facts of one version of a scope; what has not changed is taken over."""

    def __init__(self, found: Sequence[Fact], before: FactIndex | None = None) -> None:
        self._facts = found
        #: By id and version: the words of a fact, each between two spaces.
        self.words: dict[tuple[str, int], str] = {}
        known = self.words if before is None else before.words
        for fact in found:
            key = fact.id, fact.version
            self.words[key] = known.get(key) or _join_words(fact.text or "")
        self._usual = sum(map(len, self.words.values())) / max(1, len(found)) or 1.0

    def find(self, query: str, limit: int) -> list[Fact]:
        """Return at most ``limit`` facts with words of the query, the best match first."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(_join_words(query).split()):
            self._add_scores(scores, f" {word} ", 1.0)
            self._add_scores(scores, f" {word[:_STEM]}", _STEM_WEIGHT)
        ranked = sorted(scores, key=lambda at: (-scores[at], -self._facts[at].number))
        return [self._facts[at] for at in ranked[:limit]]

    def _add_scores(self, scores: dict[int, float], wanted: str, weight: float) -> None:
        places = [
            (at, count, len(words))
            for at, words in enumerate(self.words.values())
            if (count := words.count(wanted))
        ]
        rarity = math.log(1 + (len(self._facts) - len(places) + 0.5) / (len(places) + 0.5))
        for at, count, length in places:
            saturation = count + _K * (1 - _B + _B * length / self._usual)
            scores[at] = scores.get(at, 0.0) + weight * rarity * count * (_K + 1) / saturation


def _join_words(text: str) -> str:
    """Return the words of a text, each between two spaces of its own."""
    return "".join(f" {unit} " for unit in split_units(fold_text(text)) if unit[0].isalnum())
