"""What records of other systems say, in our words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The names of one fact in routing records, the newer one first.
_FINALIZED = ("expiry_finalized", "memory_flushed")


def was_finalized(record: Mapping[str, object]) -> bool:
    """
    Whether plugins were told already that the session of a routing record has expired.

    The newer name decides where a record has both, whatever it says.
    """
    return next((bool(record[name]) for name in _FINALIZED if name in record), False)
