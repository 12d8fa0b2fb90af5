"""The application while the engine is being built: what needs none is answered at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.api import health
from clew.api.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from clew.config import Secret


class StartingApp:
    """
    An ASGI application that stands in for another one until that is there.

    Health and the list of models are answered at once, and ``/readyz`` says that the gateway is
    starting, so that balancers choose another one. Every other request waits.
    """

    def __init__(self, *, models: Sequence[str], token: Secret | None) -> None:
        answers: Mapping[str, Callable[[], Response]] = {
            "/healthz": health.alive,
            "/readyz": health.STARTING.response,
            "/v1/models": lambda: health.list_models(models),
        }
        self._early: ASGIApp = Guard(_Answers(answers), token)
        self._paths = answers.keys()
        self._app: ASGIApp | None = None
        self._complete = asyncio.Event()

    def complete(self, app: ASGIApp) -> None:
        """Hand all requests, also those that wait, to ``app`` from now on."""
        self._app = app
        self._complete.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None and self._is_early(scope):
            await self._early(scope, receive, send)
            return
        await self._complete.wait()
        assert self._app is not None
        await self._app(scope, receive, send)

    def _is_early(self, scope: Scope) -> bool:
        return scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in self._paths


class _Answers:
    """Answers paths without looking at anything else of a request."""

    def __init__(self, answers: Mapping[str, Callable[[], Response]]) -> None:
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answers[scope["path"]]()(scope, receive, send)
