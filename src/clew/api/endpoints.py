"""Endpoints: one declaration each, from which it is routed, checked and described."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from clew.api.body import checked, parse, read_body
from clew.api.schemas import Body, Nothing, Query

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from pydantic import BaseModel
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from clew.api.pace import Pace

Q = TypeVar("Q", bound=Query | Nothing)
B = TypeVar("B", bound=Body)

JSON = "application/json"
STREAM = "text/event-stream"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What an endpoint answers where all is well."""

    says: str
    shape: type[BaseModel] | None = None
    #: Other kinds of content than JSON.
    media: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint(Generic[Q, B]):
    """What is served under one path and method."""

    method: str
    path: str
    handler: Callable[[Request, Q, B], Awaitable[Response]]
    summary: str
    query: type[Q]
    body: type[B]
    replies: Mapping[int, Reply]
    #: What may go wrong beside what may go wrong everywhere.
    problems: tuple[int, ...] = ()
    #: Request headers with their meaning.
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Whether anybody may ask, without the token.
    open: bool = False

    async def answer(self, request: Request, pace: Pace) -> Response:
        """:raises Declined: if query or body are not as declared"""
        query = checked(dict(request.query_params), self.query)
        if self.body is Nothing:
            return await self.handler(request, query, checked({}, self.body))
        raw = parse(await read_body(request, patience=pace.body))
        # Kept as it came: what a key stands for is the request with all its fields.
        request.state.raw = raw
        return await self.handler(request, query, checked(raw, self.body))

    @property
    def all_problems(self) -> tuple[int, ...]:
        """Every status of an error that it may answer with."""
        found = {*self.problems, 500, 503}
        if self.body is not Nothing:
            found |= {400, 408, 413}
        if self.method != "GET":
            found.add(507)
        if not self.open:
            found |= {401, 403}
        return tuple(sorted(found))

    @property
    def streams(self) -> bool:
        return any(STREAM in reply.media for reply in self.replies.values())


AnyEndpoint = Endpoint[Any, Any]


class Methods:
    """The endpoints of one path."""

    def __init__(self, endpoints: Iterable[AnyEndpoint], pace: Pace) -> None:
        self._pace = pace
        self._endpoints = {endpoint.method: endpoint for endpoint in endpoints}
        plain = self._endpoints.get("GET")
        if plain is not None and not plain.streams:
            self._endpoints["HEAD"] = plain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is None:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(self._endpoints))})
        request = Request(scope, receive, send)
        response = await endpoint.answer(request, self._pace)
        await response(scope, receive, send)


def routes(endpoints: Iterable[AnyEndpoint], pace: Pace) -> list[Route]:
    """One route for each path."""
    by_path: dict[str, list[AnyEndpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, []).append(endpoint)
    return [Route(path, Methods(found, pace)) for path, found in by_path.items()]
