"""
Search text: units, index tokens and queries.

Text is folded (NFKC, case, quotes, no invisible characters) and split into *units*: a word
of one script, a number, one character of a script that is written without spaces (each with
its marks), one symbol, or a run of white space. A query matches where its units follow each
other, so ``c++``, ``foo.bar`` and ``"two words"`` match literally, ``youer`` matches
``修改youer服务端``, and both ``iPhone`` and ``15手机`` match ``iPhone15手机``.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING

from clew.core.text import sanitize_text
from clew.errors import UsageError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Longer words are cut in the index; matching uses the whole word.
MAX_TOKEN_LENGTH = 64
#: More tokens than this are not looked up in the index; matching uses the whole query.
MAX_QUERY_TOKENS = 24

_SPACE, _MARK, _NUMBER, _SYMBOL, _DENSE = " ", "m", "n", "s", "d"
_DENSE_SCRIPTS = frozenset(
    re.findall(
        r"\w+",
        "BOPOMOFO CJK HANGUL HENTAIGANA HIRAGANA IDEOGRAPHIC JAVANESE KATAKANA KHMER LAO MYANMAR "
        "NEW NUSHU TAI TANGUT THAI TIBETAN VERTICAL YI",
    )
)
# The format characters (Unicode's Cf) and the variation selectors: never visible or typed.
_INVISIBLE = (
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e01ef"
)
_QUOTES = {"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‐": "-", "‑": "-"}  # noqa: RUF001
_UNTYPED = re.compile(f"[{_INVISIBLE}{''.join(_QUOTES)}]")
# Separates the units of a flattened text; folding leaves no control characters.
_BORDER = "\x1f"
#: Punctuation that is ignored around a search term.
_EDGES = frozenset(" .,;:!?\"'()[]{}<>…。、「」『』《》¿¡")

_ASCII_UNITS = re.compile(r"[a-z]+|[0-9]+|[\x00-\x20\x7f]+|[!-~]")
# On the classes of characters, not on the characters; \u0100 and up are scripts.
_UNITS = re.compile(r"n[nm]*|([\u0100-\uffff])(?:\1|m)*|[ds]m*|m+| +")
_PAIRS = re.compile(r"(?=(dm*dm*|sm*sm*))")
_ASCII_WORDS = re.compile(r"(?=((?<![a-z])[a-z]+[0-9]+|(?<![0-9])[0-9]+[a-z]+))")
_ASCII_SYMBOLS = re.compile(r"[!-/:-@\[-`{-~]{2,}")
_PARTS = re.compile(r'(?<!\S)"(?P<phrase>[^"]+)"(?!\S)|(?P<term>\S+)')


class _CharacterClasses(dict[int, str]):
    """Classes of folded characters, computed on first use."""

    def __init__(self) -> None:
        super().__init__()
        self._scripts: dict[str, str] = {}

    def __missing__(self, code: int) -> str:
        self[code] = self._classify(chr(code))
        return self[code]

    def _classify(self, character: str) -> str:
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


_character_classes = _CharacterClasses()


def fold_text(text: str) -> str:
    """Return the form in which texts are compared; folding is idempotent."""
    if text.isascii():
        return text.lower()
    text = _UNTYPED.sub(lambda found: _QUOTES.get(found[0], ""), text)
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded)


def split_units(folded: str) -> list[str]:
    """Return the units of a folded text in order, white space as one space."""
    if folded.isascii():
        return [unit if " " < unit[0] <= "~" else " " for unit in _ASCII_UNITS.findall(folded)]
    classes = folded.translate(_character_classes)
    spans = (run.span() for run in _UNITS.finditer(classes))
    return [folded[start:end] if classes[start] != _SPACE else " " for start, end in spans]


def tokenize_text(text: str) -> set[str]:
    """
    Return the index tokens of a text.

    These are its units, and each adjacent pair of dense characters, of symbols, or of a
    word and a number.
    """
    folded = fold_text(text)
    cut = split_units(folded)
    each = {unit[:MAX_TOKEN_LENGTH] for unit in cut}
    each.discard(" ")
    if folded.isascii():
        # As below, without visiting each unit.
        each.update(pair[:MAX_TOKEN_LENGTH] for pair in _ASCII_WORDS.findall(folded))
        for run in _ASCII_SYMBOLS.findall(folded):
            each.update(map(str.__add__, run, run[1:]))
    else:
        each.update(_join_pair(*pair) for pair in pairwise(cut) if _are_both_words(*pair))
        spans = (pair.span(1) for pair in _PAIRS.finditer(folded.translate(_character_classes)))
        each.update(folded[start:end] for start, end in spans)
    return each


def _class_of(unit: str) -> str:
    return _character_classes[ord(unit[0])]


def _is_word(unit: str) -> bool:
    return _class_of(unit) not in (_SPACE, _MARK, _SYMBOL, _DENSE)


def _are_both_words(unit: str, following: str) -> bool:
    """Return whether both are words or numbers: two of one script would be one unit."""
    return _is_word(unit) and _is_word(following)


def _join_pair(unit: str, following: str) -> str:
    return (unit + following)[:MAX_TOKEN_LENGTH]


def _flatten_units(some: Iterable[str]) -> str:
    return f"{_BORDER}{_BORDER.join(some)}{_BORDER}"


class ParsedQuery(Record, kw_only=False):
    """Search query: a text matches if it has every one of ``needles``."""

    #: Each is a sequence of adjacent units.
    needles: tuple[tuple[str, ...], ...]

    def matches_text(self, text: str) -> bool:
        """Return whether a text has every needle."""
        folded = fold_text(text)
        # Cheap, and rejects nearly every text that does not match.
        if not all(unit in folded for needle in self.needles for unit in needle if unit != " "):
            return False
        flat = _flatten_units(split_units(folded))
        return all(_flatten_units(needle) in flat for needle in self.needles)

    def index_tokens(self) -> list[str]:
        """Return the tokens that every matching text has in the index, rarest first."""
        wanted = {token for needle in self.needles for token in _required_tokens(needle)}
        return sorted(wanted, key=lambda token: (-len(token), token))[:MAX_QUERY_TOKENS]

    def make_snippet(self, text: str, width: int = 160) -> str:
        """Return a line of about ``width`` characters around the first needle in the text."""
        at = _find_position(text, self.needles[0])
        start = max(0, min(at - width // 4, len(text) - width))
        line = " ".join(text[start : start + width].split())
        return ("…" if start else "") + line + ("…" if start + width < len(text) else "")


def _required_tokens(needle: tuple[str, ...]) -> Iterator[str]:
    kinds = [_class_of(unit) for unit in needle]
    # A unit in a pair is not required by itself: the pair is rarer.
    paired = False
    for at, (unit, kind) in enumerate(zip(needle, kinds, strict=True)):
        before = paired
        following = needle[at + 1] if at + 1 < len(needle) else " "
        dense = kind in (_DENSE, _SYMBOL) and _class_of(following) == kind
        paired = dense or _are_both_words(unit, following)
        if paired:
            yield unit + following if dense else _join_pair(unit, following)
        elif not before and kind != _SPACE:
            yield unit[:MAX_TOKEN_LENGTH]


def _find_position(text: str, needle: tuple[str, ...]) -> int:
    folded = fold_text(text)
    words = max((unit for unit in needle), key=len)
    at = max(folded.find("".join(needle)), 0) or max(folded.find(words), 0)
    if len(folded) == len(text):
        return at
    # The longest beginning of the text whose folded form ends before the place.
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(fold_text(text[:middle])) <= at else (low, middle - 1)
    return low


def parse_query(query: str) -> ParsedQuery:
    """
    Parse a user's query: required words and ``"phrases"``, without operators.

    :raises UsageError: if it has nothing to search for
    """
    folded = fold_text(sanitize_text(query))
    found: dict[tuple[str, ...], None] = {}
    for part in _PARTS.finditer(folded):
        needle = _trim_units(
            split_units(part["phrase"] or part["term"]), term=part["phrase"] is None
        )
        if needle:
            found[needle] = None
    if not found:
        raise UsageError(
            "there is nothing to search for in this query: it has no letter, digit or symbol"
        )
    return ParsedQuery(tuple(found))


def _trim_units(some: list[str], *, term: bool) -> tuple[str, ...]:
    worded = any(_class_of(unit) not in (_SYMBOL, _SPACE) for unit in some)
    edges = _EDGES if term and worded else {" "}
    start, end = 0, len(some)
    while start < end and some[start] in edges:
        start += 1
    while start < end and some[end - 1] in edges:
        end -= 1
    return tuple(some[start:end])
