"""Usage as servers report it: whole numbers that can be true, the last report of a reply."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["LastUsage", "clean_usage"]

#: More than any request can cost.
_MOST = 100_000_000
#: The names of a count, the format's own first.
_INPUT = ("prompt_tokens", "input_tokens", "prompt_eval_count")
_OUTPUT = ("completion_tokens", "output_tokens", "eval_count")


def clean_usage(usage: object, *, chat: bool) -> dict[str, Any] | None:
    """Return a usage object of this format, without what cannot be true; ``None`` for no usage."""
    if not isinstance(usage, dict):
        return None
    given = cast("dict[str, Any]", usage)
    read, written = _first(given, _INPUT), _first(given, _OUTPUT)
    if read is None and written is None:
        return None
    index = 0 if chat else 1
    rest = {key: _clean(value) for key, value in given.items() if key not in (*_INPUT, *_OUTPUT)}
    clean = {key: value for key, value in rest.items() if value is not None}
    clean |= {_INPUT[index]: read or 0, _OUTPUT[index]: written or 0}
    if "total_tokens" in given:
        clean["total_tokens"] = (read or 0) + (written or 0)
    return clean


class LastUsage:
    """The newest of the usages that came with one reply: they do not add up."""

    def __init__(self, *, chat: bool) -> None:
        self._chat = chat
        self.value: dict[str, Any] | None = None

    def take(self, usage: object) -> None:
        """Remember a report; a count that it leaves out stays as it was."""
        clean = clean_usage(usage, chat=self._chat)
        if clean is None:
            return
        before = self.value or {}
        known = {key: value for key, value in before.items() if not clean.get(key)}
        self.value = {**clean, **known}


def _first(usage: dict[str, Any], names: tuple[str, ...]) -> int | None:
    return next((n for name in names if (n := _count(usage.get(name))) is not None), None)


def _count(value: object) -> int | None:
    """A count of tokens, if the value can be one."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        count = int(float(value))
    except (ValueError, OverflowError):
        return None
    return count if 0 <= count < _MOST else None


def _clean(value: object) -> object:
    """A part of a usage object; ``None`` where it is a number that cannot be true."""
    if isinstance(value, dict):
        parts = cast("dict[str, object]", value).items()
        return {key: clean for key, part in parts if (clean := _clean(part)) is not None}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if 0 <= value < _MOST else None
    return value
