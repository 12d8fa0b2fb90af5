"""
A server of the official SDK behind an authorization server, as a hosted one is.

Tokens live for ``lifetime`` seconds. A refresh token is valid once: who uses one twice loses all.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send


@dataclass(kw_only=True)
class OAuthServer:
    """State of both servers, and what was asked of them."""

    lifetime: float = 300.0
    clock: Callable[[], float] = time.time
    url: str = ""
    #: The status with which the authorization server answers instead of tokens.
    fails_with: int | None = None
    registered: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    renewals: int = 0
    #: Requests with a token that is not valid, or without one.
    refused: int = 0
    calls: int = 0
    _codes: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    _access: dict[str, float] = field(default_factory=dict[str, float])
    _refresh: set[str] = field(default_factory=set[str])
    _used: set[str] = field(default_factory=set[str])

    def revoke(self) -> None:
        """Forget every token."""
        self._access.clear()
        self._refresh.clear()

    def drop_access(self) -> None:
        """Accept no token any more that was given so far, but renew each."""
        self._access.clear()

    def list_tokens(self) -> list[str]:
        return [*self._access, *self._refresh]

    def protected_resource(self, _request: Request) -> Response:
        return JSONResponse({"resource": f"{self.url}/mcp", "authorization_servers": [self.url]})

    def metadata(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/allow",
                "token_endpoint": f"{self.url}/tokens",
                "registration_endpoint": f"{self.url}/clients",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
            }
        )

    async def register(self, request: Request) -> Response:
        given = await request.json()
        self.registered.append(given)
        made = {**given, "client_id": f"client{len(self.registered)}"}
        return JSONResponse(made, status_code=201)

    def allow(self, request: Request) -> Response:
        """Send the browser of somebody who allows everything back."""
        asked, code = request.query_params, secrets.token_hex(8)
        self._codes[code] = (asked["code_challenge"], asked["redirect_uri"])
        back = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}")

    async def tokens(self, request: Request) -> Response:
        if self.fails_with is not None:
            return Response("out of order", status_code=self.fails_with)
        form = {key: str(value) for key, value in (await request.form()).items()}
        if form["grant_type"] == "refresh_token":
            return self._renew(form["refresh_token"])
        if form["grant_type"] == "client_credentials":
            return self._give()
        challenge, redirect_uri = self._codes.pop(form["code"], ("", ""))
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (proof, form["redirect_uri"]) != (challenge, redirect_uri):
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        return self._give()

    def _renew(self, token: str) -> Response:
        self.renewals += 1
        if token in self._used:
            self.revoke()
        if token not in self._refresh:
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        self._refresh.discard(token)
        self._used.add(token)
        return self._give()

    def _give(self) -> Response:
        access, refresh = secrets.token_hex(8), secrets.token_hex(8)
        self._access[access] = self.clock() + self.lifetime
        self._refresh.add(refresh)
        return JSONResponse(
            {
                "access_token": access,
                "token_type": "Bearer",
                "expires_in": int(self.lifetime),
                "refresh_token": refresh,
            }
        )

    def is_valid(self, header: str) -> bool:
        return self._access.get(header.removeprefix("Bearer "), 0.0) > self.clock()


@contextmanager
def oauth_server(**settings: Any) -> Generator[OAuthServer]:
    """Serve on a free port."""
    state = OAuthServer(**settings)
    tools = MCPServer("hosted")

    @tools.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        state.calls += 1
        return a + b

    inner = tools.streamable_http_app(streamable_http_path="/mcp", stateless_http=True)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", []))
        if scope["type"] == "http" and not state.is_valid(
            headers.get(b"authorization", b"").decode()
        ):
            state.refused += 1
            place = f"{state.url}/.well-known/oauth-protected-resource/mcp"
            challenge = {"WWW-Authenticate": f'Bearer resource_metadata="{place}"'}
            await Response(status_code=401, headers=challenge)(scope, receive, send)
            return
        await inner(scope, receive, send)

    app = Starlette(
        routes=[
            Route("/.well-known/oauth-protected-resource/mcp", state.protected_resource),
            Route("/.well-known/oauth-authorization-server", state.metadata),
            Route("/clients", state.register, methods=["POST"]),
            Route("/allow", state.allow),
            Route("/tokens", state.tokens, methods=["POST"]),
            Mount("/", guarded),
        ],
        lifespan=inner.router.lifespan_context,
    )
    config = uvicorn.Config(app, port=0, log_level="error", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    block_until(lambda: server.started, seconds=60, pause=0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    state.url = f"http://127.0.0.1:{port}"
    try:
        yield state
    finally:
        server.should_exit = True
        thread.join()
