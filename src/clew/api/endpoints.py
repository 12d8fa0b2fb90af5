"""Endpoint declarations, from which routes, validation and documentation are derived."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from clew.api.request_body import parse_json_body, read_body, validate_model
from clew.api.schemas import EmptyInput, QueryParams, RequestBody

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from pydantic import BaseModel
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from clew.api.timeouts import ApiTimeouts

Q = TypeVar("Q", bound=QueryParams | EmptyInput)
B = TypeVar("B", bound=RequestBody)

JSON = "application/json"
STREAM = "text/event-stream"


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseSpec:
    """A successful response of an endpoint."""

    description: str
    model: type[BaseModel] | None = None
    #: Media types other than JSON.
    media: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint(Generic[Q, B]):
    """The declaration of one path and method."""

    method: str
    path: str
    handler: Callable[[Request, Q, B], Awaitable[Response]]
    summary: str
    query: type[Q]
    body: type[B]
    responses: Mapping[int, ResponseSpec]
    #: Error statuses besides those that every endpoint can return.
    problems: tuple[int, ...] = ()
    #: Request headers with their descriptions.
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    #: The endpoint needs no token.
    is_public: bool = False

    async def parse_request(self, request: Request, pace: ApiTimeouts) -> tuple[Q, B]:
        """
        Return the validated query and body of a request.

        :raises ProblemError: if the query or the body does not match its declaration
        """
        query = validate_model(dict(request.query_params), self.query)
        if self.body is EmptyInput:
            return query, validate_model({}, self.body)
        raw = parse_json_body(await read_body(request, patience=pace.body))
        # Kept unchanged: an idempotency key stands for the request with all its fields.
        request.state.raw = raw
        return query, validate_model(raw, self.body)

    @property
    def problem_statuses(self) -> tuple[int, ...]:
        """Return every error status of the endpoint."""
        found = {*self.problems, 500, 503}
        if self.body is not EmptyInput:
            found |= {400, 408, 413}
        if self.method != "GET":
            found.add(507)
        if not self.is_public:
            found |= {401, 403}
        return tuple(sorted(found))

    @property
    def is_stream(self) -> bool:
        return any(STREAM in reply.media for reply in self.responses.values())


AnyEndpoint = Endpoint[Any, Any]


class MethodRouter:
    """Dispatcher of one path's requests by method."""

    def __init__(self, endpoints: Iterable[AnyEndpoint], pace: ApiTimeouts) -> None:
        self._timeouts = pace
        self._endpoints = {endpoint.method: endpoint for endpoint in endpoints}
        plain = self._endpoints.get("GET")
        if plain is not None and not plain.is_stream:
            self._endpoints["HEAD"] = plain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is None:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(self._endpoints))})
        request = Request(scope, receive, send)
        query, body = await endpoint.parse_request(request, self._timeouts)
        response = await endpoint.handler(request, query, body)
        await response(scope, receive, send)


def build_routes(endpoints: Iterable[AnyEndpoint], pace: ApiTimeouts) -> list[Route]:
    """Return one route for each path."""
    by_path: dict[str, list[AnyEndpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, []).append(endpoint)
    return [Route(path, MethodRouter(found, pace)) for path, found in by_path.items()]
