"""Text that every database and JSON reader accepts."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
#: Replacement for a secret.
REDACTED = "********"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
#: White space, control characters, and characters that Unicode defines as ignorable.
_UNSEEN = re.compile(
    r"[\s\x01-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]*"
)


def sanitize_text(text: str) -> str:
    """
    Return the text with NUL and lone surrogates replaced by U+FFFD.

    PostgreSQL rejects NUL in TEXT, and lone surrogates cannot be encoded in UTF-8.
    """
    # Every text that is stored comes by here: to encode it takes a tenth of a search.
    return text if _is_storable(text) else _UNSTORABLE.sub(REPLACEMENT, text)


def _is_storable(text: str) -> bool:
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character: platforms refuse such messages."""
    return _UNSEEN.fullmatch(text) is not None


def truncate_text(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, the last an ellipsis if the text was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def truncate_middle(text: str, most: int) -> str:
    """Return the start and end, half of ``most`` characters each, and the omitted count."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
