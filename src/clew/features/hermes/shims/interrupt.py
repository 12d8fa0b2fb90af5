"""Interruption of tools (``tools.interrupt``): a call that is stopped is given up instead."""

from __future__ import annotations


def is_interrupted() -> bool:
    """Return ``False``."""
    return False
