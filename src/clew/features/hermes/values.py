"""Values of plugins, which may be anything."""

from __future__ import annotations


def is_object(value: object) -> bool:
    """Return whether a value is a dictionary."""
    return isinstance(value, dict)
