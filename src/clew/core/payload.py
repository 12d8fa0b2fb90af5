"""Lenient readers of JSON of others: a value of the wrong type reads as empty; pure."""

from __future__ import annotations

from typing import Any, cast

Json = dict[str, Any]


def as_object(value: object) -> Json:
    """Return the value if it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_objects(value: object) -> list[Json]:
    """Return the non-empty objects of a list; none if it is no list."""
    return [found for each in as_list(value) if (found := as_object(each))]


def as_list(value: object) -> list[Any]:
    """Return the elements of a list; none if it is no list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text or number as text, anything else as an empty text."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
