"""Text as every database and every JSON reader can hold it."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
#: What stands where a secret stood.
HIDDEN = "********"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """
    The text with NUL and lone surrogates replaced by U+FFFD.

    PostgreSQL holds no NUL in TEXT, and no lone surrogate can be encoded in UTF-8.
    """
    return _UNSTORABLE.sub(REPLACEMENT, text)


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters, the last of them an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def middle_out(text: str, most: int) -> str:
    """The beginning and the end, each half of ``most`` characters, and how much is left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
