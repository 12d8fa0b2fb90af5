"""What an input must be before it is stored."""

from __future__ import annotations

from clew.core.text import storable
from clew.errors import UsageError

#: Characters of one message.
LONGEST_MESSAGE = 2_000_000


def checked_text(text: str) -> str:
    """
    The text of a message as it is stored.

    :raises UsageError: if it is empty or too long
    """
    text = storable(text)
    if not text.strip():
        raise UsageError("the message is empty: write at least one character that is no space")
    if len(text) > LONGEST_MESSAGE:
        raise UsageError(
            f"the message has {len(text):,} characters, more than the {LONGEST_MESSAGE:,} that one "
            "may have: send it in parts, or as a file"
        )
    return text
