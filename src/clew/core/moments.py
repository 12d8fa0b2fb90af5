"""Moments as people and programs write them."""

from __future__ import annotations

from datetime import UTC, datetime

from clew.clock import to_millis
from clew.errors import UsageError


def parse_moment(name: str, text: str) -> int:
    """
    Return a date or time in milliseconds; without a zone it is in UTC.

    :raises UsageError: if it is neither; names the argument
    """
    try:
        moment = datetime.fromisoformat(text)
        return to_millis(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise UsageError(
            f"{name} is {text!r}: give a date or a time such as 2026-01-31 or 2026-01-31T12:00:00Z"
        ) from None
