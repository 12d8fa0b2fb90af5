"""Idempotency keys: a repeated request with the same key gets the first answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.api.auth import bearer_token
from clew.api.caller import get_caller
from clew.api.problems import invalid_request
from clew.engine.request_service import make_request_key

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection, Request

    from clew.engine.request_service import IdempotencyKey

KEY_HEADER = "idempotency-key"
_MAX_LENGTH = 255
#: Headers that belong to the request that a key identifies.
_KEYED_HEADERS = ("x-clew-conversation", "x-clew-double-text")
#: Fields that affect how the answer is sent, not its content.
_IGNORED_FIELDS = frozenset({"stream", "stream_options"})


def caller_id(connection: HTTPConnection) -> str:
    """Return the caller of a request: each token has its own keys and histories."""
    if (caller := get_caller(connection.scope)) is not None:
        return caller.name
    return (bearer_token(connection) or b"").decode("latin-1")


def idempotency_key(request: Request) -> IdempotencyKey | None:
    """
    Return the idempotency key of the request, if it has one.

    :raises ProblemError: if it is not valid
    """
    key = request.headers.get(KEY_HEADER)
    if key is None:
        return None
    if not 1 <= len(key) <= _MAX_LENGTH:
        raise invalid_request(
            f"{KEY_HEADER} has 1 to {_MAX_LENGTH} characters, not {len(key)}", param=KEY_HEADER
        )
    body: dict[str, object] = request.state.raw
    meant = {
        "headers": {name: request.headers.get(name) for name in _KEYED_HEADERS},
        "body": {name: value for name, value in body.items() if name not in _IGNORED_FIELDS},
    }
    return make_request_key(
        caller=caller_id(request),
        path=request.url.path,
        key=key,
        request=json.dumps(meant, sort_keys=True).encode(),
    )
