"""Idempotency keys: the same key for the same request gets the first answer again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.api.guard import bearer
from clew.api.problems import invalid
from clew.engine.orders import make_request_key

if TYPE_CHECKING:
    from starlette.requests import Request

    from clew.engine.orders import IdempotencyKey

HEADER = "idempotency-key"
_LONGEST = 255
#: Headers that are part of what is asked for.
_MEANT = ("x-clew-conversation", "x-clew-double-text")
#: Fields that say how the answer is sent, not what it is.
_HOW = frozenset({"stream", "stream_options"})


def caller_of(request: Request) -> str:
    """Whose the request is: each token's keys and histories are its own."""
    return (bearer(request) or b"").decode("latin-1")


def key_of(request: Request) -> IdempotencyKey | None:
    """
    The key that came with a request, if one did.

    :raises Declined: if it cannot be one
    """
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not 1 <= len(key) <= _LONGEST:
        raise invalid(f"{HEADER} has 1 to {_LONGEST} characters, not {len(key)}", param=HEADER)
    body: dict[str, object] = request.state.raw
    meant = {
        "headers": {name: request.headers.get(name) for name in _MEANT},
        "body": {name: value for name, value in body.items() if name not in _HOW},
    }
    return make_request_key(
        caller=caller_of(request),
        path=request.url.path,
        key=key,
        request=json.dumps(meant, sort_keys=True).encode(),
    )
