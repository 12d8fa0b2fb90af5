"""The catalogue of skills that sessions are told, within a budget, and the search in all of it."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.features.skills.scanning import Skill

#: Bytes of a catalogue, and its share of the model's context window.
MAX_BYTES, MAX_SHARE = 4_096, 0.02
#: Bytes of text in a token.
_BYTES_PER_TOKEN: Final = 4
_HEAD: Final = (
    "Skills: instructions for certain tasks. When one fits, call load_skill with its name first, "
    "then follow it."
)
_SEARCH: Final = 'load_skill("?words") searches all of them.'
#: Skills that a search returns, and bytes of what it says about each.
_MAX_FOUND, _MAX_TOLD = 10, 300
_WORD: Final = re.compile(r"[^\W_]+")
#: Letters that words of one family share at their beginning.
_STEM: Final = 5


def compute_budget(window: int | None) -> int:
    """Return the bytes of a catalogue, for a model with a context window of so many tokens."""
    if window is None:
        return MAX_BYTES
    return min(MAX_BYTES, int(window * MAX_SHARE) * _BYTES_PER_TOKEN)


def render_catalogue(skills: Sequence[Skill], *, budget: int) -> str | None:
    """
    Return the catalogue: the same bytes for the same skills, and at most ``budget`` of them.

    Descriptions are shortened to the widest width that fits. Where even the names do not fit,
    the first ones are told.
    """
    if not skills:
        return None
    pairs = [(one.name, one.header.description) for one in skills]
    whole = _join(pairs, None, note="")
    if _size(whole) <= budget:
        return whole
    width = _find_width(pairs, budget)
    if width is not None:
        return _join(pairs, width, note=f"Descriptions are shortened. {_SEARCH}")
    return _join_names([name for name, _ in pairs], budget)


def _find_width(pairs: Sequence[tuple[str, str]], budget: int) -> int | None:
    """Return the most bytes of each description with which all fit; ``None`` if none do."""
    note = f"Descriptions are shortened. {_SEARCH}"
    low, high = 0, max(len(text.encode()) for _, text in pairs)
    if _size(_join(pairs, low, note=note)) > budget:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if _size(_join(pairs, middle, note=note)) <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def _join(pairs: Iterable[tuple[str, str]], width: int | None, *, note: str) -> str:
    lines = [
        _format_line(name, text if width is None else shorten(text, width)) for name, text in pairs
    ]
    return "\n".join([_HEAD, *lines, *([note] if note else [])])


def _format_line(name: str, text: str) -> str:
    return f"- {name}: {text}" if text else f"- {name}"


def _join_names(names: Sequence[str], budget: int) -> str:
    """Return as many names as fit, and how many were left out."""
    told: list[str] = []
    text = ""
    for name in names:
        more = len(names) - len(told) - 1
        note = f"{more} more are left out: {_SEARCH}" if more else _SEARCH
        longer = "\n".join([_HEAD, ", ".join([*told, name]), note])
        if _size(longer) > budget:
            break
        told.append(name)
        text = longer
    return text or f"{len(names)} skills: {_SEARCH}"


def shorten(text: str, width: int) -> str:
    """Return a text of at most so many bytes, cut before a word where that is possible."""
    if len(text.encode()) <= width:
        return text
    cut = text.encode()[: max(0, width - len("…".encode()))].decode("utf-8", "ignore")
    head, space, _ = cut.rpartition(" ")
    kept = head if space and len(head) * 2 > len(cut) else cut
    return f"{kept.rstrip(' ,.;:')}…" if kept.strip() else ""


def _size(text: str) -> int:
    return len(text.encode())


def search_skills(skills: Sequence[Skill], query: str) -> str:
    """Return the skills that a query is about, the best first."""
    wanted = set(split_words(query))
    words = {one.name: _count_words(one.name, one.header.description) for one in skills}
    rarity = Counter(word for found in words.values() for word in found)
    scored = [(_score(wanted, words[one.name], rarity, len(skills)), one) for one in skills]
    found = sorted(
        (pair for pair in scored if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].name)
    )
    if not found:
        return f"None of {len(skills)} skills is about that."
    lines = [
        _format_line(one.name, shorten(one.header.description, _MAX_TOLD))
        for _, one in found[:_MAX_FOUND]
    ]
    more = len(found) - len(lines)
    return "\n".join([*lines, *([f"{more} more: use rarer words."] if more else [])])


def split_words(text: str) -> list[str]:
    """Return the words of a text, and of long ones also what their family shares."""
    words = _WORD.findall(text.casefold())
    return [*words, *(f"{word[:_STEM]}…" for word in words if len(word) > _STEM)]


@lru_cache(maxsize=4_096)
def _count_words(name: str, description: str) -> Counter[str]:
    words = Counter(dict.fromkeys(split_words(description), 1))
    words.update(dict.fromkeys(split_words(name), 2))
    return words


def _score(wanted: set[str], words: Counter[str], rarity: Counter[str], total: int) -> float:
    return sum(
        min(words[word], 3) * math.log(1 + total / rarity[word]) for word in wanted if words[word]
    )
