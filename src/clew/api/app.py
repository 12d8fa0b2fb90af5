"""ASGI application: all paths, their handlers and the middleware."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import WebSocketRoute

from clew.api.auth import AuthMiddleware
from clew.api.builtin_operations import build_operations
from clew.api.chat_completions import ChatCompletionsEndpoint
from clew.api.conversations import ConversationEndpoints
from clew.api.cors import cors_middleware
from clew.api.endpoints import build_routes
from clew.api.events import EventsEndpoint
from clew.api.health import offered_models
from clew.api.health_endpoints import SystemEndpoints
from clew.api.metrics import MetricsEndpoint, MetricsMiddleware, RequestStats
from clew.api.openapi import build_openapi
from clew.api.problems import INTERNAL_ERROR, Problem, problem_from_error
from clew.api.routes import build_endpoints
from clew.api.rpc.context import RpcContext
from clew.api.rpc.websocket import RpcWebSocketEndpoint
from clew.api.shutdown import ShutdownSignals
from clew.api.timeouts import DEFAULT_TIMEOUTS, ApiTimeouts
from clew.api.webhooks import WebhookEndpoint
from clew.commands.builtin import BUILTIN_REGISTRY
from clew.distribution import VERSION
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from clew.api.endpoints import AnyEndpoint
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
    leaving, served = leaving or ShutdownSignals(), RequestStats()
    context = RpcContext(
        engine=engine,
        settings=settings,
        operations=operations or build_operations(engine.features),
        commands=commands,
        may_configure=settings.api.token is not None,
    )
    app = Starlette(
        routes=[
            *build_routes(_build_endpoints(context, leaving, served, pace), pace),
            WebSocketRoute("/api/ws", RpcWebSocketEndpoint(context, name).serve_socket),
        ],
        middleware=[
            Middleware(MetricsMiddleware, served),
            *cors_middleware(settings.api.origins),
            Middleware(AuthMiddleware, settings.api.token, settings.api.origins),
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


def _build_endpoints(
    context: RpcContext, leaving: ShutdownSignals, served: RequestStats, pace: ApiTimeouts
) -> Sequence[AnyEndpoint]:
    engine, settings = context.engine, context.settings
    models = offered_models(settings.model.name)
    rule = settings.session.double_text
    conversations = ConversationEndpoints(engine=engine, double_text=rule, shutdown=leaving.stop)

    @cache
    def openapi_document() -> dict[str, object]:
        return build_openapi(endpoints, version=VERSION, with_token=settings.api.token is not None)

    endpoints = build_endpoints(
        context,
        chat=ChatCompletionsEndpoint(
            engine=engine, models=models, double_text=rule, shutdown=leaving.stop, pace=pace
        ),
        conversations=conversations,
        events=EventsEndpoint(
            engine=engine, conversations=conversations, shutdown=leaving.drain, pace=pace
        ),
        hooks=WebhookEndpoint(registry=engine.webhooks, timeouts=pace),
        metrics=MetricsEndpoint(engine=engine, stats=served),
        system=SystemEndpoints(engine=engine, models=models, openapi=openapi_document),
    )
    return endpoints


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = {
        404: (f"there is nothing at {request.url.path}", "unknown_path"),
        405: (f"{request.url.path} does not take {request.method}", "method_not_allowed"),
    }
    message, code = what.get(error.status_code, (str(error.detail), "http_error"))
    return Problem(status=error.status_code, message=message, code=code).to_response(error.headers)


async def _handle_clew_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ClewError)
    return problem_from_error(error).to_response()


async def _handle_disconnect(request: Request, error: Exception) -> Response:
    """Return a response that nobody reads: the client disconnected while sending its request."""
    return Response(status_code=499)


async def _handle_unexpected_error(request: Request, error: Exception) -> Response:
    # The server logs the error with its traceback.
    return INTERNAL_ERROR.to_response()
