"""What an input must be before it is stored."""

from __future__ import annotations

from clew.core.text import sanitize_text
from clew.errors import UsageError

#: Characters of one message.
LONGEST_MESSAGE = 2_000_000
#: Characters of a title.
LONGEST_TITLE = 200


def checked_text(text: str) -> str:
    """
    The text of a message as it is stored.

    :raises UsageError: if it is empty or too long
    """
    text = sanitize_text(text)
    if not text.strip():
        raise UsageError("the message is empty: write at least one character that is no space")
    if len(text) > LONGEST_MESSAGE:
        raise UsageError(
            f"the message has {len(text):,} characters, more than the {LONGEST_MESSAGE:,} that one "
            "may have: send it in parts, or as a file"
        )
    return text


def checked_title(title: str) -> str:
    """
    A title as it is stored, on one line.

    :raises UsageError: if it is empty or too long
    """
    cleaned = " ".join(sanitize_text(title).split())
    if not cleaned:
        raise UsageError("a title has at least one character that is no space")
    if len(cleaned) > LONGEST_TITLE:
        raise UsageError(f"a title has at most {LONGEST_TITLE} characters, not {len(cleaned)}")
    return cleaned
