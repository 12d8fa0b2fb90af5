"""The words of a text, as texts are compared."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.core.search import fold_text, split_units

if TYPE_CHECKING:
    from collections.abc import Sequence


def list_words(text: str) -> list[str]:
    """Return the words of a text, without punctuation and case."""
    return [unit for unit in split_units(fold_text(text)) if unit[0].isalnum()]


def hash_words(words: Sequence[str]) -> str:
    """Return the digest of some words."""
    return hashlib.sha256(" ".join(words).encode()).hexdigest()
