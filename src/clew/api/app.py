"""ASGI application: all paths, their handlers and the middleware."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from clew.api.auth import AuthMiddleware
from clew.api.builtin_operations import build_operations
from clew.api.cors import cors_middleware
from clew.api.http_call import HttpServer
from clew.api.mcp.endpoint import McpEndpoint
from clew.api.operation_context import OperationContext
from clew.api.problems import INTERNAL_ERROR, Problem, problem_from_error
from clew.api.request_stats import MetricsMiddleware, RequestStats
from clew.api.routes import build_routes, iter_endpoints, public_path_matcher
from clew.api.rpc.websocket import RpcWebSocketEndpoint
from clew.api.shutdown import ShutdownSignals
from clew.api.timeouts import DEFAULT_TIMEOUTS, ApiTimeouts
from clew.api.trace_context import TraceContextMiddleware
from clew.api.website import make_websites
from clew.commands.builtin import BUILTIN_REGISTRY
from clew.errors import ClewError

if TYPE_CHECKING:
    from starlette.requests import Request

    from clew.api.operations import Operations
    from clew.commands.registry import CommandRegistry
    from clew.config import Settings
    from clew.engine.engine import Engine


def create_app(
    engine: Engine,
    settings: Settings,
    *,
    operations: Operations | None = None,
    commands: CommandRegistry = BUILTIN_REGISTRY,
    leaving: ShutdownSignals | None = None,
    pace: ApiTimeouts = DEFAULT_TIMEOUTS,
    name: str = "",
) -> Starlette:
    """
    Return the API over a running engine as an ASGI application.

    It starts and stops nothing, so it can be mounted in another program. ``leaving``
    signals that its server is stopping. ``name`` identifies this server to clients that
    look for it.
    """
    context = OperationContext(
        engine=engine,
        settings=settings,
        operations=operations or build_operations(engine.features),
        commands=commands,
        may_configure=settings.api.token is not None,
    )
    return build_app(context, leaving=leaving, pace=pace, name=name)


def build_app(
    context: OperationContext,
    *,
    leaving: ShutdownSignals | None = None,
    pace: ApiTimeouts = DEFAULT_TIMEOUTS,
    name: str = "",
) -> Starlette:
    """Return the API as ``create_app`` does, for clients that see what the context says."""
    served, api = RequestStats(), context.settings.api
    server = HttpServer(
        context=context,
        endpoints=tuple(iter_endpoints(context.operations)),
        leaving=leaving or ShutdownSignals(),
        stats=served,
        timeouts=pace,
    )
    sites = make_websites(context.engine)
    is_public = public_path_matcher(server.endpoints)
    app = Starlette(
        routes=[
            # First: a page asks for dozens of files at once, and each API path is tried in turn.
            *(route for site in sites for route in site.make_routes(server)),
            *build_routes(server),
            # It is described by its own protocol: not an endpoint of OpenAPI.
            Route("/mcp", McpEndpoint(server)),
            WebSocketRoute("/api/ws", RpcWebSocketEndpoint(context, name).serve_socket),
        ],
        middleware=[
            Middleware(MetricsMiddleware, served),
            *([Middleware(TraceContextMiddleware)] if context.engine.is_traced else ()),
            *cors_middleware(api.origins),
            Middleware(
                AuthMiddleware,
                api.token,
                api.origins,
                lambda path: any(site.is_public(path) for site in sites) or is_public(path),
                [site.identify for site in sites],
            ),
        ],
        exception_handlers={
            HTTPException: _handle_http_error,
            ClewError: _handle_clew_error,
            ClientDisconnect: _handle_disconnect,
            Exception: _handle_unexpected_error,
        },
    )
    # A redirect would repeat whatever the client wrote as Host.
    app.router.redirect_slashes = False
    return app


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = {
        404: (f"there is no resource at {request.url.path}", "unknown_path"),
        405: (f"{request.url.path} does not take {request.method}", "method_not_allowed"),
    }
    message, code = what.get(error.status_code, (str(error.detail), "http_error"))
    return Problem(status=error.status_code, message=message, code=code).to_response(error.headers)


async def _handle_clew_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ClewError)
    return problem_from_error(error).to_response()


async def _handle_disconnect(request: Request, error: Exception) -> Response:
    """Return a response to a client that disconnected while sending its request."""
    return Response(status_code=499)


async def _handle_unexpected_error(request: Request, error: Exception) -> Response:
    # The server logs the error with its traceback.
    return INTERNAL_ERROR.to_response()
