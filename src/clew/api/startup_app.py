"""Application that answers while the engine starts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.api import health
from clew.api.auth import AuthMiddleware, send_problem
from clew.api.problems import SERVER_ERROR, Problem
from clew.api.shutdown import ShutdownSignals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from clew.config import Secret

_STOPPED_PROBLEM = Problem(
    status=503,
    message="the gateway was stopped while it started; nothing was stored: try again later",
    code="not_ready",
    type=SERVER_ERROR,
    again=True,
)


class StartupApp:
    """
    An ASGI application that stands in for another one until that is ready.

    Health and the list of models are answered at once, and ``/readyz`` reports that the
    gateway is starting, so that load balancers choose another one. Every other request
    waits, and is rejected if the server stops (``leaving``) before the other application is
    ready: nothing was stored.
    """

    def __init__(
        self, *, models: Sequence[str], token: Secret | None, leaving: ShutdownSignals | None = None
    ) -> None:
        answers: Mapping[str, Callable[[], Response]] = {
            "/healthz": health.liveness_response,
            "/readyz": health.STARTING_PROBLEM.to_response,
            "/v1/models": lambda: health.models_response(models),
        }
        self._early_app: ASGIApp = AuthMiddleware(_FixedResponses(answers), token)
        self._paths = answers.keys()
        self._app: ASGIApp | None = None
        self._completed = asyncio.Event()
        self._shutdown = leaving or ShutdownSignals()

    def set_app(self, app: ASGIApp) -> None:
        """Pass all requests, waiting ones too, to ``app`` from now on."""
        self._app = app
        self._completed.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None and self._is_early_request(scope):
            await self._early_app(scope, receive, send)
            return
        if self._app is None:
            await self._wait_for_app()
        await (self._app or _reject_stopped)(scope, receive, send)

    async def _wait_for_app(self) -> None:
        tasks = [asyncio.create_task(e.wait()) for e in (self._completed, self._shutdown.drain)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def _is_early_request(self, scope: Scope) -> bool:
        return scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in self._paths


class _FixedResponses:
    """Returns a fixed response for each path."""

    def __init__(self, answers: Mapping[str, Callable[[], Response]]) -> None:
        self._responses = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._responses[scope["path"]]()(scope, receive, send)


async def _reject_stopped(scope: Scope, receive: Receive, send: Send) -> None:
    await send_problem(_STOPPED_PROBLEM, scope, receive, send)
