"""CORS: lets the origins in the settings call the API from a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Response headers that a page may read.
_EXPOSED_HEADERS = (
    "X-Clew-Conversation",
    "X-Clew-Session",
    "X-Clew-Turn",
    "X-Clew-Trace",
    "X-Should-Retry",
    "Retry-After",
)


def cors_middleware(origins: Sequence[str]) -> list[Middleware]:
    """
    Return the CORS middleware; empty if no other origin is allowed.

    It runs before the authentication: a browser sends no token with its preflight request.
    """
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=list(_EXPOSED_HEADERS),
            max_age=600,
        )
    ]
