"""The facts that a query is about, best first (BM25)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from clew.features.memory.words import list_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.features.memory.facts import Fact

#: Saturation by repeated words, and weight of the length (the usual values of BM25).
_K, _B = 1.2, 0.75
#: Characters by which words of one family are told, and their weight beside the same word.
_STEM, _STEM_WEIGHT = 5, 0.5
#: Words whose places are kept.
_KEPT = 100

#: Place of a fact, how often it has a word, and its length.
_Places: TypeAlias = "list[tuple[int, int, int]]"


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
        #: By word or its beginning: where it was found before.
        self._places: dict[str, _Places] = {}
        self._usual = sum(map(len, self.words.values())) / max(1, len(found)) or 1.0

    def find(self, query: str, limit: int) -> list[Fact]:
        """Return at most ``limit`` facts with words of the query, the best match first."""
        scores: dict[int, float] = {}
        for places, weight in self._list_terms(query):
            # What most facts have tells little: it only orders those that have something rarer.
            if scores and 2 * len(places) > len(self._facts):
                places = [one for one in places if one[0] in scores]
            self._add_scores(scores, places, weight)
        ranked = sorted(scores, key=lambda at: (-scores[at], -self._facts[at].number))
        return [self._facts[at] for at in ranked[:limit]]

    def _list_terms(self, query: str) -> list[tuple[_Places, float]]:
        """Return where the words of a query are, with the weight of each, the rarest first."""
        found: list[tuple[_Places, float]] = []
        for word in dict.fromkeys(_join_words(query).split()):
            for wanted, weight in ((f" {word} ", 1.0), (f" {word[:_STEM]}", _STEM_WEIGHT)):
                places = self._find_places(wanted)
                rarity = len(self._facts) - len(places) + 0.5
                found.append((places, weight * math.log(1 + rarity / (len(places) + 0.5))))
        return sorted(found, key=lambda one: len(one[0]))

    def _find_places(self, wanted: str) -> _Places:
        """Return the facts that have a word or its beginning, how often, and their lengths."""
        if (known := self._places.get(wanted)) is not None:
            return known
        found = [
            (at, count, len(words))
            for at, words in enumerate(self.words.values())
            if (count := words.count(wanted))
        ]
        if len(self._places) < _KEPT:
            self._places[wanted] = found
        return found

    def _add_scores(self, scores: dict[int, float], places: _Places, weight: float) -> None:
        for at, count, length in places:
            saturation = count + _K * (1 - _B + _B * length / self._usual)
            scores[at] = scores.get(at, 0.0) + weight * count * (_K + 1) / saturation


def _join_words(text: str) -> str:
    """Return the words of a text, each between two spaces of its own."""
    return "".join(f" {word} " for word in list_words(text))
