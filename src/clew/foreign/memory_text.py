"""Remembered texts of other systems as bullets, one for each fact."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The most characters of one fact.
MAX_FACT: Final = 500
_MARK: Final = re.compile(r"^(?:[-*+]|\d{1,3}[.)])\s+")
_CHECKBOX: Final = re.compile(r"^\[[ xX]\]\s+")
#: Lines that structure a text and say nothing.
_STRUCTURE: Final = re.compile(r"^(?:#{1,6}\s.*|[§\-=*_]{1,}|```.*|---+|<!--.*-->)$")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?;])\s+")


def list_facts(text: str) -> list[str]:
    """Return each bullet and each paragraph; a long one in parts, at the ends of sentences."""
    return [part for fact in _iter_facts(text) for part in _split(fact)]


def _iter_facts(text: str) -> Iterator[str]:
    fact: list[str] = []
    for raw in text.lstrip("\ufeff").splitlines():
        line = raw.strip()
        if not line or _STRUCTURE.match(line) or _MARK.match(line):
            if fact:
                yield " ".join(fact)
            fact = []
        if line and not _STRUCTURE.match(line):
            fact.append(_CHECKBOX.sub("", _MARK.sub("", line)))
    if fact:
        yield " ".join(fact)


def _split(fact: str) -> Iterator[str]:
    part = ""
    for sentence in _SENTENCE_END.split(fact) if len(fact) > MAX_FACT else [fact]:
        if part and len(part) + 1 + len(sentence) > MAX_FACT:
            yield part
            part = ""
        part = f"{part} {sentence}".strip()
        while len(part) > MAX_FACT:
            yield part[:MAX_FACT]
            part = part[MAX_FACT:].strip()
    if part:
        yield part
