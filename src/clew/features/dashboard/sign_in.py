"""Logging in: a token or a code once, then a cookie that only the dashboard's page can use."""

from __future__ import annotations

import hmac
import time
from collections import defaultdict, deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import JSONResponse, Response

from clew.api.caller import WebCaller
from clew.api.problems import Problem
from clew.api.request_body import read_body
from clew.core.scope import LOCAL, Scope
from clew.errors import NotFound
from clew.features.dashboard import logins
from clew.features.dashboard.addresses import PageAddress, find_address, is_own_request
from clew.record import Record

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection, Request

    from clew.config import Secret
    from clew.engine.engine import Engine
    from clew.features.dashboard.logins import BrowserLogin
    from clew.features.dashboard.settings import DashboardSettings

log = structlog.get_logger(__name__)

LOGIN_PATH: Final = "/api/login"
LOGOUT_PATH: Final = "/api/logout"
#: Paths for which a cookie stands in for the token.
_COOKIE_PATHS: Final = "/api/"
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
#: Failures of one address in that many seconds after which it has to wait.
_MAX_FAILURES: Final = 10
_FAILURE_SECONDS: Final = 60.0
_BODY_SECONDS: Final = 10.0

_OFF: Final = Problem(
    status=404,
    message="the dashboard is off: set dashboard.enabled to true, and start the gateway again",
    code="dashboard_off",
)
_FOREIGN: Final = Problem(
    status=403,
    message="only the page of the dashboard itself may use its login",
    code="foreign_origin",
)
_WRONG: Final = Problem(
    status=401,
    message="invalid or expired: a link of clew dashboard works once and for five minutes; the "
    "token is the one in api.token",
    code="invalid_login",
)
_TOO_MANY: Final = Problem(
    status=429, message="too many attempts to sign in: wait a minute", code="too_many_attempts"
)
_INVALID: Final = Problem(
    status=400, message='send {"code": …} or {"token": …} as JSON', code="invalid_value"
)


class Visitor(Record):
    """A person who uses the page."""

    scope: Scope
    #: The id of the login; ``None`` where nobody logs in.
    login: str | None


class LoginRequest(BaseModel):
    """A login by one of the two."""

    model_config = ConfigDict(extra="forbid", strict=True)

    code: str | None = Field(default=None, max_length=200)
    token: str | None = Field(default=None, max_length=4000)


def find_refusal(connection: HTTPConnection, settings: DashboardSettings) -> Problem | None:
    """Return why a request gets nothing of the dashboard; ``None`` if it does."""
    if not settings.enabled:
        return _OFF
    host = connection.headers.get("host", "")
    if find_address(host, settings.origins) is not None:
        return None
    return Problem(
        status=403,
        message=f"the dashboard is not opened at {host!r}: use http://127.0.0.1 or "
        f'http://localhost, or list its address in dashboard.origins, as "https://{host}"',
        code="foreign_host",
    )


class SignIn:
    """Logins of browsers at one gateway."""

    def __init__(self, engine: Engine, settings: DashboardSettings, token: Secret | None) -> None:
        self._engine, self._settings, self._token = engine, settings, token
        self._failures: defaultdict[str, deque[float]] = defaultdict(deque)

    async def identify(self, connection: HTTPConnection) -> WebCaller | Problem | None:
        """Return whose cookie a request has; ``None`` without one that holds."""
        if not (self._settings.enabled and connection.scope["path"].startswith(_COOKIE_PATHS)):
            return None
        address = self._find_address(connection)
        cookie = "" if address is None else connection.cookies.get(cookie_name(address), "")
        if address is None or not cookie:
            return None
        if not _is_own(connection, address):
            return _FOREIGN
        login = await self._find_login(cookie)
        if login is None:
            return None
        return WebCaller(
            viewer=login.scope,
            name=f"dashboard:{login.scope}",
            is_valid=partial(self._is_valid, cookie),
        )

    async def find_visitor(self, request: Request) -> Visitor | Problem:
        """Return who sends a request of the page, or why it is refused."""
        if problem := find_refusal(request, self._settings):
            return problem
        address = self._find_address(request)
        if address is None or not _is_own(request, address):
            return _FOREIGN
        if login := await self._find_login(request.cookies.get(cookie_name(address), "")):
            return Visitor(scope=login.scope, login=login.id)
        return Visitor(scope=LOCAL, login=None) if self._token is None else _WRONG

    async def show_login(self, request: Request) -> Response:
        """Say whether this browser has to log in."""
        if problem := find_refusal(request, self._settings):
            return problem.to_response()
        caller = await self.identify(request)
        is_needed = self._token is not None and not isinstance(caller, WebCaller)
        return JSONResponse({"needed": is_needed}, headers={"Cache-Control": "no-store"})

    async def log_in(self, request: Request) -> Response:
        """Take a token or a code, and answer with a cookie."""
        if problem := find_refusal(request, self._settings):
            return problem.to_response()
        address = self._find_address(request)
        if address is None or not _is_own(request, address):
            return _FOREIGN.to_response()
        client = request.client.host if request.client else ""
        if self._has_failed_often(client):
            return _TOO_MANY.to_response()
        try:
            given = LoginRequest.model_validate_json(
                await read_body(request, patience=_BODY_SECONDS)
            )
        except ValidationError:
            return _INVALID.to_response()
        cookie = logins.make_secret()
        login = await self._make_login(given, cookie, request.headers.get("user-agent", ""))
        if login is None:
            self._failures[client].append(time.monotonic())
            log.warning("login_refused", client=client)
            return _WRONG.to_response()
        log.info("logged_in", login=login.id)
        return _with_cookie(address, cookie)

    async def log_out(self, request: Request) -> Response:
        """Revoke the login of this browser."""
        address = self._find_address(request)
        if address is None or not _is_own(request, address):
            return _FOREIGN.to_response()
        login = await self._find_login(request.cookies.get(cookie_name(address), ""))
        if login is not None:
            with suppress(NotFound):  # revoked meanwhile
                await self._engine.feature_context.store.write(logins.revoke_login, login.id)
            log.info("logged_out", login=login.id)
        return _with_cookie(address, "")

    def _find_address(self, connection: HTTPConnection) -> PageAddress | None:
        return find_address(connection.headers.get("host", ""), self._settings.origins)

    async def _find_login(self, cookie: str) -> BrowserLogin | None:
        store = self._engine.feature_context.store
        login = await store.read(logins.find_login, cookie)
        if login is not None and logins.is_use_due(login, int(time.time() * 1000)):
            await store.write(logins.store_use, login.id)
        return login

    async def _is_valid(self, cookie: str) -> bool:
        return await self._find_login(cookie) is not None

    async def _make_login(
        self, given: LoginRequest, cookie: str, label: str
    ) -> BrowserLogin | None:
        store = self._engine.feature_context.store
        if given.code is not None:
            return await store.write(logins.use_code, given.code, cookie, label=label)
        if given.token is None or self._token is None:
            return None
        if not hmac.compare_digest(given.token.encode(), self._token.reveal().encode()):
            return None
        return await store.write(logins.add_login, cookie, scope=LOCAL, label=label)

    def _has_failed_often(self, client: str) -> bool:
        failures = self._failures[client]
        while failures and failures[0] < time.monotonic() - _FAILURE_SECONDS:
            failures.popleft()
        if not failures:
            del self._failures[client]
        return len(failures) >= _MAX_FAILURES


def cookie_name(address: PageAddress) -> str:
    """Return the name of the cookie: browsers keep those of all ports of a host together."""
    name = f"clew-login-{address.port or 'default'}"
    return f"__Host-{name}" if address.is_secure else name


def _is_own(connection: HTTPConnection, address: PageAddress) -> bool:
    is_socket = connection.scope["type"] == "websocket"
    is_change = is_socket or connection.scope["method"] not in _SAFE_METHODS
    return is_own_request(
        address,
        origin=connection.headers.get("origin"),
        site=connection.headers.get("sec-fetch-site"),
        must_have_origin=is_change,
    )


def _with_cookie(address: PageAddress, cookie: str) -> Response:
    """Return an answer that sets the cookie, or removes it if it is empty."""
    response = JSONResponse({"needed": not cookie}, headers={"Cache-Control": "no-store"})
    response.set_cookie(
        cookie_name(address),
        cookie,
        max_age=int(logins.LOGIN_FOR.total_seconds()) if cookie else 0,
        path="/",
        secure=address.is_secure,
        httponly=True,
        samesite="strict",
    )
    return response
