"""
Quirks: what servers send that their format does not foresee, byte by byte, as a table.

Each is a proper reply with one thing changed, with what a reader is to make of it.
"""

from __future__ import annotations

from clew.testing.provider.quirks.quirk import Case, Quirk, cases
from clew.testing.provider.quirks.table import QUIRKS

__all__ = ["QUIRKS", "Case", "Quirk", "cases"]
