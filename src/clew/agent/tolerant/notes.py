"""What a server sends that nobody here knows: named in the log, once per kind and process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import structlog

__all__ = ["Note", "log_once", "silent"]

log = structlog.get_logger(__name__)

#: Told the kind of a thing (``part``, ``event`` …) and its name there.
Note: TypeAlias = Callable[[str, str], None]

_seen: set[tuple[str, str]] = set()
#: A server that makes names up cannot fill the log, or the memory.
_MOST = 200


def log_once(kind: str, name: str) -> None:
    """Log an unknown thing, unless it was logged before."""
    key = (kind, name[:80])
    if key in _seen or len(_seen) >= _MOST:
        return
    _seen.add(key)
    log.warning("provider_sent_unknown", kind=kind, name=key[1])


def silent(kind: str, name: str) -> None:
    """Log nothing."""
