"""Counts of the requests that a server has answered."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


def _zero_counts() -> defaultdict[tuple[str, str], float]:
    return defaultdict(float)


@dataclass(slots=True)
class RequestStats:
    """The requests that this process has served."""

    #: Requests by method, path as declared and status.
    requests: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    #: Seconds by method and path, and requests now under way.
    seconds: defaultdict[tuple[str, str], float] = field(default_factory=_zero_counts)
    under_way: int = 0


class MetricsMiddleware:
    """Counts all requests, rejected ones too."""

    def __init__(self, app: ASGIApp, served: RequestStats) -> None:
        self._app, self._stats = app, served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = "500"

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        begun = time.perf_counter()
        self._stats.under_way += 1
        try:
            await self._app(scope, receive, send_counted)
        finally:
            self._stats.under_way -= 1
            # Undeclared paths count as one: clients must not be able to create labels.
            path = scope["route"].path if "route" in scope else "none"
            method = scope["method"] if "route" in scope else "any"
            self._stats.requests[method, path, status] += 1
            self._stats.seconds[method, path] += time.perf_counter() - begun
