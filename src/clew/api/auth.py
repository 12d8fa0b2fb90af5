"""Authentication middleware; everything but health is behind it, unknown paths too."""

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

from clew.api.caller import set_caller
from clew.api.problems import INTERNAL_ERROR, Problem
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from clew.api.caller import WebCaller
    from clew.config import Secret

    Identify = Callable[[HTTPConnection], Awaitable[WebCaller | Problem | None]]

log = structlog.get_logger(__name__)

#: Paths that need no token, also while the server starts.
PUBLIC_PATHS = frozenset({"/healthz", "/readyz"})

_PROTECTED_TYPES = ("http", "websocket")

#: The WebSocket subprotocol, and the prefix of one that carries the token: a page in a browser
#: cannot set headers there, but can offer subprotocols. The server selects only the first.
SUBPROTOCOL = "clew.v1"
BEARER_PREFIX = "bearer."

#: Headers for identity, target and repetition: they are ambiguous if sent more than once.
_SINGLE_HEADERS = (
    "host",
    "authorization",
    "x-clew-conversation",
    "x-clew-double-text",
    "idempotency-key",
    "last-event-id",
)
_MISSING_TOKEN = Problem(
    status=401,
    message="this needs the API's token: send it as Authorization: Bearer TOKEN",
    code="missing_api_key",
)
_MISSING_SOCKET_TOKEN = Problem(
    status=401,
    message=(
        "this needs the API's token: send it as Authorization: Bearer TOKEN, or from a browser as "
        f"the protocols {SUBPROTOCOL} and {BEARER_PREFIX} followed by the token in base64url"
    ),
    code="missing_api_key",
)
_WRONG_TOKEN = Problem(
    status=401, message="the token is not the one in api.token", code="invalid_api_key"
)
_FOREIGN_MESSAGE = (
    "without api.token only programs and pages of this machine are served, and {name} is "
    "{value!r}: use http://127.0.0.1 or http://localhost, name the page in api.origins, or set "
    "api.token"
)


class AuthMiddleware:
    """
    Passes a request to the app, or rejects it.

    With a token set, a request must carry it. Without one the server listens on loopback
    only, and a web page elsewhere could still reach it through the person's browser (DNS
    rebinding, or a plain cross-site POST): so Host and Origin must be of this machine.

    ``is_public`` says which paths need no token, and ``identify`` who is logged in without one.

    Behind the middleware a path is as it was sent: a name in it may contain an escaped
    slash.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: Secret | None,
        origins: Collection[str] = (),
        is_public: Callable[[str], bool] = PUBLIC_PATHS.__contains__,
        identify: Sequence[Identify] = (),
    ) -> None:
        self._app, self._token, self._origins = app, token, origins
        self._is_public, self._identify = is_public, identify

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in _PROTECTED_TYPES and not self._is_public(scope["path"]):
            connection = HTTPConnection(scope)
            if problem := await self._find_problem(connection) or _find_repeated_header(connection):
                await send_problem(problem, scope, receive, send)
                return
            if raw := scope.get("raw_path"):
                scope["path"] = raw.decode("ascii", "replace")
        await self._app(scope, receive, send)

    async def _find_problem(self, connection: HTTPConnection) -> Problem | None:
        if self._token is not None and bearer_token(connection) is None:
            for identify in self._identify:
                caller = await identify(connection)
                if isinstance(caller, Problem):
                    return caller
                if caller is not None:
                    set_caller(connection.scope, caller)
                    return None
        return find_problem(connection, self._token, self._origins)


def find_problem(
    connection: HTTPConnection, token: Secret | None, origins: Collection[str] = ()
) -> Problem | None:
    """Return why a client is not let in; ``None`` if it is."""
    if token is None:
        return _find_foreign_origin(connection, origins)
    given = bearer_token(connection)
    if given is None:
        return _MISSING_SOCKET_TOKEN if connection.scope["type"] == "websocket" else _MISSING_TOKEN
    try:
        wanted = token.reveal()
    except SettingsError as error:
        # An unauthenticated client must not learn where the token is stored.
        log.error("token_unreadable", error=str(error))
        return INTERNAL_ERROR
    return None if hmac.compare_digest(given, wanted.encode()) else _WRONG_TOKEN


def _find_repeated_header(connection: HTTPConnection) -> Problem | None:
    for name in _SINGLE_HEADERS:
        if len(connection.headers.getlist(name)) > 1:
            message = f"the header {name} occurs more than once: send one"
            return Problem(status=400, message=message, code="invalid_value", param=name)
    return None


async def send_problem(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request, or the handshake of a WebSocket, with a problem."""
    response = problem.to_response()
    if scope["type"] == "http":
        await response(scope, receive, send)
    else:
        # The handshake gets the same response over HTTP.
        await WebSocket(scope, receive, send).send_denial_response(response)


def bearer_token(connection: HTTPConnection) -> bytes | None:
    """Return the token that a client sent."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return _token_from_protocols(connection)
    # Headers are decoded as Latin-1 whatever the client meant: compare the bytes.
    return token.strip().encode("latin-1")


def _token_from_protocols(connection: HTTPConnection) -> bytes | None:
    offered: list[str] = connection.scope.get("subprotocols") or []
    encoded = next(
        (one[len(BEARER_PREFIX) :] for one in offered if one.startswith(BEARER_PREFIX)), ""
    )
    try:
        # Without padding: "=" is not allowed in a protocol name.
        token = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return token or None


def select_subprotocol(connection: HTTPConnection) -> str | None:
    """Return our WebSocket subprotocol if the client offers it."""
    return SUBPROTOCOL if SUBPROTOCOL in (connection.scope.get("subprotocols") or ()) else None


def _find_foreign_origin(connection: HTTPConnection, origins: Collection[str]) -> Problem | None:
    host = connection.headers.get("host", "")
    origin = connection.headers.get("origin")
    for name, value, here in (
        ("Host", host, is_loopback_url(f"//{host}")),
        ("Origin", origin, origin is None or origin in origins or is_loopback_url(origin)),
    ):
        if not here:
            message = _FOREIGN_MESSAGE.format(name=name, value=value)
            return Problem(status=403, message=message, code="foreign_origin")
    return None


def is_loopback_url(url: str) -> bool:
    """Return whether a URL leads to this machine; names other than ``localhost`` do not."""
    try:
        name = urlsplit(url).hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
