"""Normalisation of usage reports: plausible whole numbers, the last report of a reply."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["UsageTracker", "clean_usage"]

#: Above the cost of any request.
_MAX_COUNT = 100_000_000
#: Field names of a count, the Chat format's first.
_INPUT_FIELDS = ("prompt_tokens", "input_tokens", "prompt_eval_count")
_OUTPUT_FIELDS = ("completion_tokens", "output_tokens", "eval_count")


def clean_usage(usage: object, *, chat: bool) -> dict[str, Any] | None:
    """Return a usage object of this format without implausible values; ``None`` for no usage."""
    if not isinstance(usage, dict):
        return None
    given = cast("dict[str, Any]", usage)
    read, written = _first_count(given, _INPUT_FIELDS), _first_count(given, _OUTPUT_FIELDS)
    if read is None and written is None:
        return None
    index = 0 if chat else 1
    rest = {
        key: _clean_value(value)
        for key, value in given.items()
        if key not in (*_INPUT_FIELDS, *_OUTPUT_FIELDS)
    }
    clean = {key: value for key, value in rest.items() if value is not None}
    clean |= {_INPUT_FIELDS[index]: read or 0, _OUTPUT_FIELDS[index]: written or 0}
    if "total_tokens" in given:
        clean["total_tokens"] = (read or 0) + (written or 0)
    return clean


class UsageTracker:
    """Tracker of the newest usage report of a reply; reports do not add up."""

    def __init__(self, *, chat: bool) -> None:
        self._chat = chat
        self.value: dict[str, Any] | None = None

    def record_usage(self, usage: object) -> None:
        """Store a report; a count that it lacks keeps its value."""
        clean = clean_usage(usage, chat=self._chat)
        if clean is None:
            return
        before = self.value or {}
        known = {key: value for key, value in before.items() if not clean.get(key)}
        self.value = {**clean, **known}


def _first_count(usage: dict[str, Any], names: tuple[str, ...]) -> int | None:
    return next((n for name in names if (n := _parse_count(usage.get(name))) is not None), None)


def _parse_count(value: object) -> int | None:
    """Return a token count, ``None`` if the value cannot be one."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        count = int(float(value))
    except (ValueError, OverflowError):
        return None
    return count if 0 <= count < _MAX_COUNT else None


def _clean_value(value: object) -> object:
    """Return a part of a usage object; ``None`` for an implausible number."""
    if isinstance(value, dict):
        parts = cast("dict[str, object]", value).items()
        return {key: clean for key, part in parts if (clean := _clean_value(part)) is not None}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if 0 <= value < _MAX_COUNT else None
    return value
