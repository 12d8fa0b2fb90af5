"""Reading what platforms send: what is not of the shape that was agreed reads as nothing; pure."""

from __future__ import annotations

from typing import Any, cast

Json = dict[str, Any]


def obj(value: object) -> Json:
    """The object, or an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def objs(value: object) -> list[Json]:
    """The objects of a list, or none."""
    listed: list[object] = cast("list[object]", value) if isinstance(value, list) else []
    return [found for each in listed if (found := obj(each))]


def each(value: object) -> list[object]:
    """The elements of a list, or none."""
    return cast("list[object]", value) if isinstance(value, list) else []


def text(value: object) -> str:
    """The text, or that of a number, or an empty one."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
