"""
Quirks: deviations of real servers from their format, byte by byte, as a table.

Each is a correct reply with one change, and the way in which it must be read.
"""

from __future__ import annotations

from clew.testing.provider.quirks.quirk import Quirk, QuirkCase, build_cases
from clew.testing.provider.quirks.table import QUIRKS

__all__ = ["QUIRKS", "Quirk", "QuirkCase", "build_cases"]
