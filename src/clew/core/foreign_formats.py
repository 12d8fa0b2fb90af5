"""Records of other systems, in Clew's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The names of one fact in routing records, the newer one first.
_FINALIZED = ("expiry_finalized", "memory_flushed")


def is_expiry_finalized(record: Mapping[str, object]) -> bool:
    """
    Return whether plugins already know that the record's session has expired.

    If a record has both names, the newer one decides.
    """
    return next((bool(record[name]) for name in _FINALIZED if name in record), False)
