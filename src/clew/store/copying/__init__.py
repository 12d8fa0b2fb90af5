"""
Copy of all rows of one store into another, of either database, verified row by row.

The rows are read in the order of their keys, in batches; each batch is stored together with
its position, so that an interrupted copy can be resumed. ``copy_rows`` reads everything
from one snapshot; ``compare_tables`` reads both sides once more and compares every value.
"""

from __future__ import annotations
