"""Trace context of requests: an input that comes with a request continues its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.traceparent import TRACEPARENT, incoming_traceparent, parse_traceparent

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_HEADER = TRACEPARENT.encode()


class TraceContextMiddleware:
    """Keeps the header ``traceparent`` of a request while it is handled, if it is valid."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = [value for name, value in scope["headers"] if name == _HEADER]
            text = given[0].decode("latin-1").strip() if len(given) == 1 else None
            incoming_traceparent.set(None if parse_traceparent(text) is None else text)
        await self._app(scope, receive, send)
