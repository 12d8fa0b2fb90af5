"""Values of plugins, which may be anything."""

from __future__ import annotations

from typing import Any, cast


def as_object(value: object) -> dict[str, Any]:
    """Return a value that is a dictionary; an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def is_object(value: object) -> bool:
    """Return whether a value is a dictionary."""
    return isinstance(value, dict)
