"""Endpoint declarations, from which routes, validation and documentation are derived."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from clew.api.operation_scope import CLIENTS, CallerKind, OperationScope
from clew.api.request_body import parse_json_body, read_body, validate_model
from clew.api.schemas import EmptyInput, QueryParams, RequestBody
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic import BaseModel
    from starlette.requests import Request
    from starlette.responses import Response

    from clew.api.timeouts import ApiTimeouts

JSON = "application/json"
STREAM = "text/event-stream"


class ResponseSpec(Record):
    """A successful response of an endpoint."""

    description: str
    model: type[BaseModel] | None = None
    #: Media types other than JSON.
    media: tuple[str, ...] = ()


class Endpoint(Record):
    """The declaration of one path and method."""

    method: str
    path: str
    #: Gets a ``clew.api.http_call.HttpCall``, the query and the body.
    handler: Callable[[Any, Any, Any], Awaitable[Response]]
    summary: str
    responses: Mapping[int, ResponseSpec]
    query: type[QueryParams | EmptyInput] = EmptyInput
    body: type[RequestBody] = EmptyInput
    #: Callers and paths that are allowed, checked before the handler runs.
    scope: OperationScope = CLIENTS
    #: Error statuses besides those that every endpoint can return.
    problems: tuple[int, ...] = ()
    #: Request headers with their descriptions.
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    async def parse_request(
        self, request: Request, pace: ApiTimeouts
    ) -> tuple[QueryParams | EmptyInput, RequestBody]:
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
    def is_public(self) -> bool:
        """Return True if the endpoint needs no token."""
        return self.scope.callers is CallerKind.PUBLIC

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
