"""Removal of control characters: foreign text must not control the terminal."""

from __future__ import annotations

from clew.core import escapes


def strip_controls(text: str) -> str:
    """Return the text as ``escapes.strip_controls`` does, with spaces instead of tabs."""
    return escapes.strip_controls(text.expandtabs(4))
