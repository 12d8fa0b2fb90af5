"""
All rows of one store, in another: of either database, verified row by row.

The rows come in the order of their keys, slice by slice; a slice is stored together with how far
it goes, so that a copy that was interrupted goes on where it was. ``copy_rows`` reads everything
from one snapshot; ``compare`` reads both sides once more and counts every value.
"""

from __future__ import annotations
