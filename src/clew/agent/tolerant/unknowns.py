"""Log of unknown things that servers send, once per kind and process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import structlog

__all__ = ["UnknownReporter", "ignore_unknown", "log_unknown_once"]

log = structlog.get_logger(__name__)

#: Receives the kind of an unknown thing (``part``, ``event`` …) and its name.
UnknownReporter: TypeAlias = Callable[[str, str], None]

_seen: set[tuple[str, str]] = set()
#: Limit, so that a server that invents names cannot fill log or memory.
_MAX_LOGGED = 200


def log_unknown_once(kind: str, name: str) -> None:
    """Log an unknown thing unless it was logged before."""
    key = (kind, name[:80])
    if key in _seen or len(_seen) >= _MAX_LOGGED:
        return
    _seen.add(key)
    log.warning("provider_sent_unknown", kind=kind, name=key[1])


def ignore_unknown(kind: str, name: str) -> None:
    """Log nothing."""
