"""Pauses between the attempts of a retry."""

from __future__ import annotations

import random


def add_jitter(pause: float) -> float:
    """Return a random part of a pause, at least half, so that not all come back at once."""
    return pause * random.uniform(0.5, 1.0)


def next_pause(attempt: int, *, first: float, longest: float) -> float:
    """Return the pause after an attempt (1, 2, …): it doubles up to the longest, with jitter."""
    return add_jitter(min(first * 2 ** (attempt - 1), longest))
