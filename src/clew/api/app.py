"""The application: every path, its handler, and what stands before them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import WebSocketRoute

from clew.api.chat import Chat
from clew.api.conversations import Conversations
from clew.api.cors import cross_origin
from clew.api.endpoints import routes
from clew.api.events import Events
from clew.api.guard import Guard
from clew.api.health import model_names
from clew.api.hooks import Hooks
from clew.api.metrics import Counting, Metrics, Served
from clew.api.openapi import describe
from clew.api.pace import PACE, Pace
from clew.api.problems import INTERNAL, Problem, problem_of
from clew.api.rpc.socket import Socket
from clew.api.shutdown import Leaving
from clew.api.system import System
from clew.api.table import table
from clew.distribution import VERSION
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from clew.api.endpoints import AnyEndpoint
    from clew.config import Settings
    from clew.engine.engine import Engine


def create_app(
    engine: Engine,
    settings: Settings,
    *,
    leaving: Leaving | None = None,
    pace: Pace = PACE,
    name: str = "",
) -> Starlette:
    """
    The API over a running engine, as an ASGI application.

    It opens and closes nothing, so that it can be mounted in another program. ``leaving`` tells it
    that its server stops. ``name`` is told to those who look for this very server.
    """
    leaving, served = leaving or Leaving(), Served()
    app = Starlette(
        routes=[
            *routes(_endpoints(engine, settings, leaving, served, pace), pace),
            WebSocketRoute("/api/ws", Socket(engine, settings, name).serve),
        ],
        middleware=[
            Middleware(Counting, served),
            *cross_origin(settings.api.origins),
            Middleware(Guard, settings.api.token, settings.api.origins),
        ],
        exception_handlers={
            HTTPException: _http_error,
            ClewError: _clew_error,
            ClientDisconnect: _gone,
            Exception: _unforeseen,
        },
    )
    # A redirect would repeat whatever the client wrote as Host.
    app.router.redirect_slashes = False
    return app


def _endpoints(
    engine: Engine, settings: Settings, leaving: Leaving, served: Served, pace: Pace
) -> Sequence[AnyEndpoint]:
    models = model_names(settings.model.name)
    rule = settings.session.double_text
    conversations = Conversations(engine=engine, double_text=rule, leaving=leaving.now)

    @cache
    def description() -> dict[str, object]:
        return describe(endpoints, version=VERSION, with_token=settings.api.token is not None)

    endpoints = table(
        chat=Chat(engine=engine, models=models, double_text=rule, leaving=leaving.now, pace=pace),
        conversations=conversations,
        events=Events(engine=engine, conversations=conversations, leaving=leaving.soon, pace=pace),
        hooks=Hooks(doors=engine.webhooks, pace=pace),
        metrics=Metrics(engine=engine, served=served),
        system=System(engine=engine, models=models, description=description),
    )
    return endpoints


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = {
        404: (f"there is nothing at {request.url.path}", "unknown_path"),
        405: (f"{request.url.path} does not take {request.method}", "method_not_allowed"),
    }
    message, code = what.get(error.status_code, (str(error.detail), "http_error"))
    return Problem(status=error.status_code, message=message, code=code).response(error.headers)


async def _clew_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ClewError)
    return problem_of(error).response()


async def _gone(request: Request, error: Exception) -> Response:
    """The client went away while it sent its request: nobody reads this."""
    return Response(status_code=499)


async def _unforeseen(request: Request, error: Exception) -> Response:
    # The server logs the error with its traceback.
    return INTERNAL.response()
