"""The application while the engine is being built: what needs none is answered at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.api import health
from clew.api.guard import Guard, refuse
from clew.api.problems import SERVER, Problem
from clew.api.shutdown import Leaving

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from clew.config import Secret

_STOPPED = Problem(
    status=503,
    message="the gateway was stopped while it started; nothing was stored: try again later",
    code="not_ready",
    type=SERVER,
    again=True,
)


class StartingApp:
    """
    An ASGI application that stands in for another one until that is there.

    Health and the list of models are answered at once, and ``/readyz`` says that the gateway is
    starting, so that balancers choose another one. Every other request waits, and is refused if
    the server stops (``leaving``) before the other application is there: nothing was stored.
    """

    def __init__(
        self, *, models: Sequence[str], token: Secret | None, leaving: Leaving | None = None
    ) -> None:
        answers: Mapping[str, Callable[[], Response]] = {
            "/healthz": health.alive,
            "/readyz": health.STARTING.response,
            "/v1/models": lambda: health.list_models(models),
        }
        self._early: ASGIApp = Guard(_Answers(answers), token)
        self._paths = answers.keys()
        self._app: ASGIApp | None = None
        self._complete = asyncio.Event()
        self._leaving = leaving or Leaving()

    def complete(self, app: ASGIApp) -> None:
        """Hand all requests, also those that wait, to ``app`` from now on."""
        self._app = app
        self._complete.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None and self._is_early(scope):
            await self._early(scope, receive, send)
            return
        if self._app is None:
            await self._wait()
        await (self._app or _refuse_stopped)(scope, receive, send)

    async def _wait(self) -> None:
        tasks = [asyncio.create_task(e.wait()) for e in (self._complete, self._leaving.soon)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def _is_early(self, scope: Scope) -> bool:
        return scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in self._paths


class _Answers:
    """Answers paths without looking at anything else of a request."""

    def __init__(self, answers: Mapping[str, Callable[[], Response]]) -> None:
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answers[scope["path"]]()(scope, receive, send)


async def _refuse_stopped(scope: Scope, receive: Receive, send: Send) -> None:
    await refuse(_STOPPED, scope, receive, send)
