"""Text as every database and every JSON reader can hold it."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
#: What stands where a secret stood.
HIDDEN = "********"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
#: White space, control characters, and what Unicode has every reader leave out.
_UNSEEN = re.compile(
    r"[\s\x01-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]*"
)


def storable(text: str) -> str:
    """
    The text with NUL and lone surrogates replaced by U+FFFD.

    PostgreSQL holds no NUL in TEXT, and no lone surrogate can be encoded in UTF-8.
    """
    return _UNSTORABLE.sub(REPLACEMENT, text)


def is_blank(text: str) -> bool:
    """Return whether a reader sees nothing of a text: platforms refuse such messages."""
    return _UNSEEN.fullmatch(text) is not None


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters, the last of them an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def middle_out(text: str, most: int) -> str:
    """The beginning and the end, each half of ``most`` characters, and how much is left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
