"""
What search compares: text as units, the tokens that an index holds, and queries.

Text is folded (NFKC, case, quotes, no invisible characters) and cut into *units*: a word of one
script, a number, one character of a script that is written without spaces (each with its marks),
one symbol, or a run of white space. A query is found where its units stand one after the other, so
``c++``, ``foo.bar`` and ``"two words"`` mean what they say, ``youer`` is found in
``修改youer服务端``, and ``iPhone`` as well as ``15手机`` in ``iPhone15手机``.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from clew.core.text import storable
from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Longer words are cut in the index; comparing is done with the whole word.
LONGEST = 64
#: More tokens than this are not asked of the index; comparing is done with all of the query.
MOST = 24

_SPACE, _MARK, _NUMBER, _SYMBOL, _DENSE = " ", "m", "n", "s", "d"
_DENSE_SCRIPTS = frozenset(
    re.findall(
        r"\w+",
        "BOPOMOFO CJK HANGUL HENTAIGANA HIRAGANA IDEOGRAPHIC JAVANESE KATAKANA KHMER LAO MYANMAR "
        "NEW NUSHU TAI TANGUT THAI TIBETAN VERTICAL YI",
    )
)
# The format characters (Unicode's Cf) and the variation selectors: nobody sees or types them.
_INVISIBLE = (
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e01ef"
)
_QUOTES = {"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‐": "-", "‑": "-"}  # noqa: RUF001
_UNTYPED = re.compile(f"[{_INVISIBLE}{''.join(_QUOTES)}]")
# In a flat text a separator stands around every unit; folding leaves no control character.
_BORDER = "\x1f"
#: Punctuation that says nothing about what is looked for where it stands around a word.
_EDGES = frozenset(" .,;:!?\"'()[]{}<>…。、「」『』《》¿¡")

_ASCII_UNITS = re.compile(r"[a-z]+|[0-9]+|[\x00-\x20\x7f]+|[!-~]")
# On the classes of characters, not on the characters; \u0100 and up are scripts.
_UNITS = re.compile(r"n[nm]*|([\u0100-\uffff])(?:\1|m)*|[ds]m*|m+| +")
_PAIRS = re.compile(r"(?=(dm*dm*|sm*sm*))")
_ASCII_WORDS = re.compile(r"(?=((?<![a-z])[a-z]+[0-9]+|(?<![0-9])[0-9]+[a-z]+))")
_ASCII_SYMBOLS = re.compile(r"[!-/:-@\[-`{-~]{2,}")
_PARTS = re.compile(r'(?<!\S)"(?P<phrase>[^"]+)"(?!\S)|(?P<term>\S+)')


class _Classes(dict[int, str]):
    """The class of a folded character; filled as characters are met."""

    def __init__(self) -> None:
        super().__init__()
        self._scripts: dict[str, str] = {}

    def __missing__(self, code: int) -> str:
        self[code] = self._of(chr(code))
        return self[code]

    def _of(self, character: str) -> str:
        category = unicodedata.category(character)
        if category in ("Zs", "Zl", "Zp", "Cc"):
            return _SPACE
        if category[0] == "M":
            return _MARK
        if category[0] not in "LN":
            return _SYMBOL
        script = re.split("[ -]", unicodedata.name(character, "?"))[0]
        if script in _DENSE_SCRIPTS:
            return _DENSE
        if category[0] == "N":
            return _NUMBER
        return self._scripts.setdefault(script, chr(0x100 + len(self._scripts)))


_classes = _Classes()


def fold(text: str) -> str:
    """The form in which texts are compared; folding it again changes nothing."""
    if text.isascii():
        return text.lower()
    text = _UNTYPED.sub(lambda found: _QUOTES.get(found[0], ""), text)
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded)


def units(folded: str) -> list[str]:
    """The units of a folded text, in order; white space as one space."""
    if folded.isascii():
        return [unit if " " < unit[0] <= "~" else " " for unit in _ASCII_UNITS.findall(folded)]
    classes = folded.translate(_classes)
    spans = (run.span() for run in _UNITS.finditer(classes))
    return [folded[start:end] if classes[start] != _SPACE else " " for start, end in spans]


def tokens(text: str) -> set[str]:
    """
    What the index holds for a text: its units, and each two together that are both dense, symbols,
    or words and numbers.
    """
    folded = fold(text)
    cut = units(folded)
    each = {unit[:LONGEST] for unit in cut}
    each.discard(" ")
    if folded.isascii():
        # As below, without a look at each of the units.
        each.update(pair[:LONGEST] for pair in _ASCII_WORDS.findall(folded))
        for run in _ASCII_SYMBOLS.findall(folded):
            each.update(map(str.__add__, run, run[1:]))
    else:
        each.update(_joined(*pair) for pair in pairwise(cut) if _are_words(*pair))
        spans = (pair.span(1) for pair in _PAIRS.finditer(folded.translate(_classes)))
        each.update(folded[start:end] for start, end in spans)
    return each


def _class(unit: str) -> str:
    return _classes[ord(unit[0])]


def _is_word(unit: str) -> bool:
    return _class(unit) not in (_SPACE, _MARK, _SYMBOL, _DENSE)


def _are_words(unit: str, following: str) -> bool:
    """Whether both are words or numbers: as two of one script they would be one unit."""
    return _is_word(unit) and _is_word(following)


def _joined(unit: str, following: str) -> str:
    return (unit + following)[:LONGEST]


def _flat(some: Iterable[str]) -> str:
    return f"{_BORDER}{_BORDER.join(some)}{_BORDER}"


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for: every one of ``needles``."""

    #: Each a list of units that stand one after the other.
    needles: tuple[tuple[str, ...], ...]

    def found_in(self, text: str) -> bool:
        """Whether a text holds all that is looked for."""
        folded = fold(text)
        # Cheap, and enough to turn away nearly every text that does not hold it.
        if not all(unit in folded for needle in self.needles for unit in needle if unit != " "):
            return False
        flat = _flat(units(folded))
        return all(_flat(needle) in flat for needle in self.needles)

    def tokens(self) -> list[str]:
        """The tokens that an index holds for every text which is found; the rarest ones first."""
        wanted = {token for needle in self.needles for token in _needed(needle)}
        return sorted(wanted, key=lambda token: (-len(token), token))[:MOST]

    def snippet(self, text: str, width: int = 160) -> str:
        """A line of about ``width`` characters of the text around the first thing looked for."""
        at = _place(text, self.needles[0])
        start = max(0, min(at - width // 4, len(text) - width))
        line = " ".join(text[start : start + width].split())
        return ("…" if start else "") + line + ("…" if start + width < len(text) else "")


def _needed(needle: tuple[str, ...]) -> Iterator[str]:
    kinds = [_class(unit) for unit in needle]
    # A unit that is in a pair is not asked for by itself: the pair is rarer.
    paired = False
    for at, (unit, kind) in enumerate(zip(needle, kinds, strict=True)):
        before = paired
        following = needle[at + 1] if at + 1 < len(needle) else " "
        dense = kind in (_DENSE, _SYMBOL) and _class(following) == kind
        paired = dense or _are_words(unit, following)
        if paired:
            yield unit + following if dense else _joined(unit, following)
        elif not before and kind != _SPACE:
            yield unit[:LONGEST]


def _place(text: str, needle: tuple[str, ...]) -> int:
    folded = fold(text)
    words = max((unit for unit in needle), key=len)
    at = max(folded.find("".join(needle)), 0) or max(folded.find(words), 0)
    if len(folded) == len(text):
        return at
    # The longest beginning of the text whose folded form ends before the place.
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(fold(text[:middle])) <= at else (low, middle - 1)
    return low


def parse(query: str) -> Query:
    """
    A person's query: words that must all be there, and ``"phrases"``. There are no operators.

    :raises UsageError: if there is nothing in it to look for
    """
    folded = fold(storable(query))
    found: dict[tuple[str, ...], None] = {}
    for part in _PARTS.finditer(folded):
        needle = _trimmed(units(part["phrase"] or part["term"]), term=part["phrase"] is None)
        if needle:
            found[needle] = None
    if not found:
        raise UsageError(
            "there is nothing to search for in this query: it has no letter, digit or symbol"
        )
    return Query(tuple(found))


def _trimmed(some: list[str], *, term: bool) -> tuple[str, ...]:
    worded = any(_class(unit) not in (_SYMBOL, _SPACE) for unit in some)
    edges = _EDGES if term and worded else {" "}
    start, end = 0, len(some)
    while start < end and some[start] in edges:
        start += 1
    while start < end and some[end - 1] in edges:
        end -= 1
    return tuple(some[start:end])
