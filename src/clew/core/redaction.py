"""Secrets are found in text however they are written there, and hidden."""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from clew.core.text import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Characters of the shortest secret that is also found encoded or split: in a shorter one
#: the pieces of words are found.
SHORTEST: Final = 8
#: How deep JSON texts stand in JSON texts: the arguments of a call, and a call quoted in a text.
_QUOTED: Final = 3
#: What may stand between two characters: line breaks and blanks, as such or as JSON writes them.
_GAP: Final = r"(?:\s|\\+[nrt])*"
_GAPS: Final = re.compile(r"(?:\s|\\+[nrt])+")


class Redactor:
    """
    Takes secrets out of texts.

    A secret is found as it is, in Python's and JSON's quotation, percent-encoded, in Base64 (of
    either alphabet, at any place of a longer text) and in hexadecimal; each also where blanks or
    line breaks part it.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if secret.strip()}
        literal = {form for secret in known for form in _quotations(secret)}
        derived = {form for secret in known for form in _encodings(secret)}
        long = {form for form in literal | derived if len(_GAPS.sub("", form)) >= SHORTEST}
        # The longest first: one may be a part of another.
        self._whole = sorted(literal, key=len, reverse=True)
        self._squeezed = sorted({_GAPS.sub("", form) for form in long}, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._whole)

    def text(self, text: str) -> str:
        """Return the text with ``********`` for each secret."""
        if not self._whole:
            return text
        for form in self._whole:
            text = text.replace(form, HIDDEN)
        # A look without gaps first: the pattern is slow, and nearly nothing has a secret.
        squeezed = _GAPS.sub("", text)
        for form in self._squeezed:
            if form in squeezed:
                text = _parted(form).sub(HIDDEN, text)
        return text


@lru_cache(maxsize=256)
def _parted(form: str) -> re.Pattern[str]:
    return re.compile(_GAP.join(re.escape(character) for character in form))


def _quotations(secret: str) -> set[str]:
    """The secret, and how it is written in messages of Python and inside of JSON texts."""
    forms = {secret, repr(secret)[1:-1]}
    for _ in range(_QUOTED):
        forms |= {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}
        forms |= {json.dumps(form)[1:-1] for form in forms}
    return forms


def _encodings(secret: str) -> Iterator[str]:
    if len(secret) < SHORTEST:
        return
    raw = secret.encode("utf-8", "surrogatepass")
    for encoded in (quote(raw, safe=""), quote_plus(raw), quote(raw)):
        yield encoded
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), encoded)
    yield raw.hex()
    yield raw.hex().upper()
    for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            encoded = alphabet(b"\0" * offset + raw).decode().rstrip("=")
            # The characters at both ends hold bits of what stands beside.
            begin, end = (0, 2, 3)[offset], len(encoded) - bool((len(raw) + offset) % 3)
            yield encoded[begin:end]
