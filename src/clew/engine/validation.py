"""Validation of inputs before they are stored."""

from __future__ import annotations

from clew.core.text import sanitize_text
from clew.errors import UsageError

#: Characters of one message.
MAX_MESSAGE_LENGTH = 2_000_000
#: Characters of a title.
MAX_TITLE_LENGTH = 200


def validate_message(text: str) -> str:
    """
    Return the text of a message as it is stored.

    :raises UsageError: if it is empty or too long
    """
    text = sanitize_text(text)
    if not text.strip():
        raise UsageError("the message is empty: write at least one character that is not a space")
    if len(text) > MAX_MESSAGE_LENGTH:
        raise UsageError(
            f"the message has {len(text):,} characters, more than the {MAX_MESSAGE_LENGTH:,} "
            "that one "
            "may have: send it in parts, or as a file"
        )
    return text


def validate_title(title: str) -> str:
    """
    Return a title as it is stored, on one line.

    :raises UsageError: if it is empty or too long
    """
    cleaned = " ".join(sanitize_text(title).split())
    if not cleaned:
        raise UsageError("a title has at least one character that is not a space")
    if len(cleaned) > MAX_TITLE_LENGTH:
        raise UsageError(f"a title has at most {MAX_TITLE_LENGTH} characters, not {len(cleaned)}")
    return cleaned
