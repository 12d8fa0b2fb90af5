"""The facts that a query is about, best first (BM25)."""

from __future__ import annotations

import math
from collections import Counter
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
    """Words of the facts of one version of a scope."""

    def __init__(self, found: Sequence[Fact]) -> None:
        self._facts = found
        self._lengths = [0] * len(found)
        self._places: dict[str, list[tuple[int, int]]] = {}
        for at, fact in enumerate(found):
            words = _split_words(fact.text or "")
            self._lengths[at] = len(words)
            for word, count in Counter([*words, *map(_stem, words)]).items():
                self._places.setdefault(word, []).append((at, count))
        self._usual = sum(self._lengths) / max(1, len(found)) or 1.0

    def find(self, query: str, limit: int) -> list[Fact]:
        """Return at most ``limit`` facts with words of the query, the best match first."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(_split_words(query)):
            self._add_scores(scores, word, 1.0)
            self._add_scores(scores, _stem(word), _STEM_WEIGHT)
        ranked = sorted(scores, key=lambda at: (-scores[at], -self._facts[at].number))
        return [self._facts[at] for at in ranked[:limit]]

    def _add_scores(self, scores: dict[int, float], word: str, weight: float) -> None:
        places = self._places.get(word, ())
        rarity = math.log(1 + (len(self._facts) - len(places) + 0.5) / (len(places) + 0.5))
        for at, count in places:
            length = _K * (1 - _B + _B * self._lengths[at] / self._usual)
            scores[at] = scores.get(at, 0.0) + weight * rarity * count * (_K + 1) / (count + length)


def _split_words(text: str) -> list[str]:
    return [unit for unit in split_units(fold_text(text)) if unit[0].isalnum()]


def _stem(word: str) -> str:
    """Return what words of one family have in common; no word has this form."""
    return f"{word[:_STEM]}~"
