"""Wrapper that keeps lists of plain JSON out of the SDK's transform of every request."""

from __future__ import annotations

from typing import Any, cast

from clew.record import Record


class _OpaqueValue(Record, kw_only=False):
    """Wrapper that the transform leaves alone, because it does not know its type."""

    value: object


def bypass_transform(arguments: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the arguments with these lists wrapped, if they hold plain JSON."""
    hidden = {
        name: _OpaqueValue(arguments[name]) for name in names if _is_plain_list(arguments.get(name))
    }
    return {**arguments, **hidden}


def _is_plain_list(value: object) -> bool:
    """Return whether a value is a list of dictionaries; SDK models are allowed in their place."""
    return isinstance(value, list) and all(
        isinstance(item, dict) for item in cast("list[object]", value)
    )


def unwrap_value(value: object) -> object:
    """Return a value without its wrapper."""
    return value.value if isinstance(value, _OpaqueValue) else value
