"""Routes of the HTTP interface, built from the registry of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route, compile_path

from clew.api.authorization import authorize_call
from clew.api.caller import limit_context
from clew.api.endpoints import Endpoint
from clew.api.http_call import HttpCall
from clew.api.operation_endpoint import bind_operation, path_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from starlette.types import Receive, Scope, Send

    from clew.api.http_call import HttpServer
    from clew.api.operations import Operations


def iter_endpoints(operations: Operations) -> Iterator[Endpoint]:
    """Yield every endpoint, in the order of the registry."""
    for entry in operations.entries:
        if isinstance(entry, Endpoint):
            yield entry
        else:
            yield from (bind_operation(entry, binding) for binding in entry.bindings)


class MethodRouter:
    """Dispatcher of one path's requests by method."""

    def __init__(self, endpoints: Iterable[Endpoint], server: HttpServer) -> None:
        self._server = server
        self._endpoints = {endpoint.method: endpoint for endpoint in endpoints}
        plain = self._endpoints.get("GET")
        if plain is not None and not plain.is_stream:
            self._endpoints["HEAD"] = plain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is None:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(self._endpoints))})
        request = Request(scope, receive, send)
        query, body = await endpoint.parse_request(request, self._server.timeouts)
        context = limit_context(self._server.context, scope)
        call = HttpCall(context=context, server=self._server, request=request)
        call = await authorize_call(endpoint.scope, call, path_fields(request))
        response = await endpoint.handler(call, query, body)
        await response(scope, receive, send)


def public_path_matcher(endpoints: Iterable[Endpoint]) -> Callable[[str], bool]:
    """Return a function that says whether no endpoint at a path needs a token."""
    by_path: dict[str, bool] = {}
    for endpoint in endpoints:
        by_path[endpoint.path] = by_path.get(endpoint.path, True) and endpoint.is_public
    patterns = [compile_path(path)[0] for path, is_public in by_path.items() if is_public]
    return lambda path: any(pattern.match(path) for pattern in patterns)


def build_routes(server: HttpServer) -> list[Route]:
    """Return one route for each path."""
    by_path: dict[str, list[Endpoint]] = {}
    for endpoint in server.endpoints:
        by_path.setdefault(endpoint.path, []).append(endpoint)
    return [Route(path, MethodRouter(by_path[path], server)) for path in order_paths(by_path)]


def order_paths(paths: Iterable[str]) -> list[str]:
    """Return the paths in an order in which ``/a/{id}`` does not hide ``/a/search``."""
    return sorted(paths, key=lambda path: [part.startswith("{") for part in path.split("/")])
