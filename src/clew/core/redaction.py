"""Redaction of secrets in text, in all common encodings."""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from clew.core.text import REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Characters of the shortest secret that is redacted: shorter ones occur in any text.
MIN_LENGTH: Final = 6
#: Characters of the shortest secret that is also found encoded or split: in a shorter one
#: the pieces of words are found.
MIN_ENCODED_LENGTH: Final = 8
#: Characters of the shortest line of a secret that is also found without the others.
_MIN_LINE_LENGTH: Final = 20
#: Nesting of JSON in JSON: the arguments of a call, and a call quoted in a text.
_MAX_QUOTING_DEPTH: Final = 3
#: White space allowed between two characters, literal or as JSON escapes.
_GAP: Final = r"(?:\s|\\+[nrt])*"
_GAPS: Final = re.compile(r"(?:\s|\\+[nrt])+")


class Redactor:
    """
    Redactor of known secrets.

    A secret is found as it is, quoted by Python or JSON, percent-encoded, in Base64 (both
    alphabets, at any offset of a longer text) and in hexadecimal; each also if spaces or
    line breaks split it.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {part for secret in secrets for part in _split_secret(secret) if part.strip()}
        literal = {form for secret in known for form in _quoted_forms(secret)}
        derived = {form for secret in known for form in _encoded_forms(secret)}
        long = {
            form for form in literal | derived if len(_GAPS.sub("", form)) >= MIN_ENCODED_LENGTH
        }
        # Longest first: one may be part of another.
        self._whole = sorted(literal, key=len, reverse=True)
        self._squeezed = sorted({_GAPS.sub("", form) for form in long}, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._whole)

    def redact_text(self, text: str) -> str:
        """Return the text with ``********`` for each secret."""
        if not self._whole:
            return text
        for form in self._whole:
            text = text.replace(form, REDACTED)
        # Search without gaps first: the pattern is slow, and secrets are rare.
        squeezed = _GAPS.sub("", text)
        for form in self._squeezed:
            if form in squeezed:
                text = _gap_pattern(form).sub(REDACTED, text)
        return text

    def redact_part(self, before: str, part: str, after: str) -> str:
        """Return a part of a text without secrets, and without what its edges leave of one."""
        text, start = before + part + after, len(before)
        end = start + len(part)
        cut = [(a, b) for a, b in self._find_spans(text) if a < start < b or a < end < b]
        first = max((b for a, b in cut if a < start), default=start)
        last = min((a for a, b in cut if b > end), default=end)
        if first >= last:  # all of it belongs to secrets
            return REDACTED if part else ""
        hidden = [REDACTED if is_cut else "" for is_cut in (first > start, last < end)]
        return self.redact_text(text[first:last]).join(hidden)

    def _find_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where a secret begins and ends, in each of its forms."""
        squeezed = _GAPS.sub("", text)
        patterns = [re.compile(re.escape(form)) for form in self._whole if form in text]
        patterns += [_gap_pattern(form) for form in self._squeezed if form in squeezed]
        for pattern in patterns:
            for found in pattern.finditer(text):
                yield found.span()


@lru_cache(maxsize=256)
def _gap_pattern(form: str) -> re.Pattern[str]:
    return re.compile(_GAP.join(re.escape(character) for character in form))


def _split_secret(secret: str) -> Iterator[str]:
    """Yield a secret, and those of its lines that are one by themselves, as of a key file."""
    yield secret
    lines = secret.splitlines()
    if len(lines) > 1:
        yield from (one for one in lines if len(one) >= _MIN_LINE_LENGTH and " " not in one)


def _quoted_forms(secret: str) -> set[str]:
    """Return the secret as it appears in Python messages and inside JSON texts."""
    forms = {secret, repr(secret)[1:-1]}
    for _ in range(_MAX_QUOTING_DEPTH):
        forms |= {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}
        forms |= {json.dumps(form)[1:-1] for form in forms}
    return forms


def _encoded_forms(secret: str) -> Iterator[str]:
    if len(secret) < MIN_ENCODED_LENGTH:
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
            # The characters at both ends contain bits of adjacent bytes.
            begin, end = (0, 2, 3)[offset], len(encoded) - bool((len(raw) + offset) % 3)
            yield encoded[begin:end]
