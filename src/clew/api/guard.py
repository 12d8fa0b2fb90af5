"""The guard: who may come in. Everything but health is behind it, unknown paths too."""

from __future__ import annotations

import base64
import binascii
import hmac
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from starlette.requests import HTTPConnection
from starlette.websockets import WebSocket

from clew.api.problems import INTERNAL, Problem
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

    from clew.config import Secret

log = structlog.get_logger(__name__)

#: Paths that anybody may ask for.
OPEN = frozenset({"/healthz", "/readyz"})
#: Below it whoever opened a door decides: what is handed in there is signed.
HOOKS = "/hooks/"

_GUARDED = ("http", "websocket")

#: What a client of the socket speaks, and before what it may send the token: a page in a browser
#: can set no header there, but name protocols. The server chooses the first, never the other.
PROTOCOL = "clew.v1"
BEARER = "bearer."

#: Headers that say who asks, of what, and whether again: of two nobody knows which is meant.
_ONCE = (
    "host",
    "authorization",
    "x-clew-conversation",
    "x-clew-double-text",
    "idempotency-key",
    "last-event-id",
)
_NO_TOKEN = Problem(
    status=401,
    message="this needs the API's token: send it as Authorization: Bearer TOKEN",
    code="missing_api_key",
)
_NO_TOKEN_IN_SOCKET = Problem(
    status=401,
    message=(
        "this needs the API's token: send it as Authorization: Bearer TOKEN, or from a browser as "
        f"the protocols {PROTOCOL} and {BEARER} followed by the token in base64url"
    ),
    code="missing_api_key",
)
_WRONG_TOKEN = Problem(
    status=401, message="the token is not the one in api.token", code="invalid_api_key"
)
_FOREIGN = (
    "without api.token only programs and pages of this machine are served, and {name} is "
    "{value!r}: use http://127.0.0.1 or http://localhost, name the page in api.origins, or set "
    "api.token"
)


class Guard:
    """
    Lets a request through to the app, or answers it.

    With a token it must be sent along. Without one the server listens on loopback only, and a web
    page elsewhere could still reach it through the person's browser (DNS rebinding, or a plain
    cross-site POST): so the host and the origin must be of this machine.

    Behind the guard a path is as it was sent: a name in it may hold an escaped slash.
    """

    def __init__(self, app: ASGIApp, token: Secret | None, origins: Collection[str] = ()) -> None:
        self._app, self._token, self._origins = app, token, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in _GUARDED and not _is_open(scope["path"]):
            connection = HTTPConnection(scope)
            if problem := self._problem(connection) or _twice(connection):
                await refuse(problem, scope, receive, send)
                return
            if raw := scope.get("raw_path"):
                scope["path"] = raw.decode("ascii", "replace")
        await self._app(scope, receive, send)

    def _problem(self, connection: HTTPConnection) -> Problem | None:
        if self._token is None:
            return _foreign(connection, self._origins)
        given = bearer(connection)
        if given is None:
            return _NO_TOKEN_IN_SOCKET if connection.scope["type"] == "websocket" else _NO_TOKEN
        try:
            wanted = self._token.reveal()
        except SettingsError as error:
            # Who may not come in is not told where the token is kept.
            log.error("token_unreadable", error=str(error))
            return INTERNAL
        return None if hmac.compare_digest(given, wanted.encode()) else _WRONG_TOKEN


def _twice(connection: HTTPConnection) -> Problem | None:
    for name in _ONCE:
        if len(connection.headers.getlist(name)) > 1:
            message = f"the header {name} is there more than once: send one"
            return Problem(status=400, message=message, code="invalid_value", param=name)
    return None


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(HOOKS)


async def refuse(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request, or the handshake of a socket, with a problem."""
    response = problem.response()
    if scope["type"] == "http":
        await response(scope, receive, send)
    else:
        # The handshake is answered in HTTP, with the same words.
        await WebSocket(scope, receive, send).send_denial_response(response)


def bearer(connection: HTTPConnection) -> bytes | None:
    """The token that a client sent."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return _bearer_in_protocols(connection)
    # Headers arrive as Latin-1, whatever the client meant: compared are the bytes.
    return token.strip().encode("latin-1")


def _bearer_in_protocols(connection: HTTPConnection) -> bytes | None:
    offered: list[str] = connection.scope.get("subprotocols") or []
    encoded = next((one[len(BEARER) :] for one in offered if one.startswith(BEARER)), "")
    try:
        # Without padding: "=" may not stand in a protocol's name.
        token = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return token or None


def spoken(connection: HTTPConnection) -> str | None:
    """The protocol that is chosen of those that a socket's client offers, if it offers ours."""
    return PROTOCOL if PROTOCOL in (connection.scope.get("subprotocols") or ()) else None


def _foreign(connection: HTTPConnection, origins: Collection[str]) -> Problem | None:
    host = connection.headers.get("host", "")
    origin = connection.headers.get("origin")
    for name, value, here in (
        ("Host", host, _is_here(f"//{host}")),
        ("Origin", origin, origin is None or origin in origins or _is_here(origin)),
    ):
        if not here:
            message = _FOREIGN.format(name=name, value=value)
            return Problem(status=403, message=message, code="foreign_origin")
    return None


def _is_here(url: str) -> bool:
    try:
        name = urlsplit(url).hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
