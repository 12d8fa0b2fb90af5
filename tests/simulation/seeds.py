"""Seeds that have failed once: each is run by a test for ever."""

from __future__ import annotations

#: The seed, and what it showed.
FAILED: dict[int, str] = {}
