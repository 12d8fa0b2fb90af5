"""Pages of other origins: those that the settings name may call the API from a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Response headers that a page may read.
_EXPOSED = (
    "X-Clew-Conversation",
    "X-Clew-Session",
    "X-Clew-Turn",
    "X-Should-Retry",
    "Retry-After",
)


def cross_origin(origins: Sequence[str]) -> list[Middleware]:
    """
    Return what answers ``OPTIONS`` and adds the CORS headers; nothing where no origin is allowed.

    It stands before the guard: a browser sends no token with its preflight.
    """
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=list(_EXPOSED),
            max_age=600,
        )
    ]
