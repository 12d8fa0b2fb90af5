"""Web pages that a server has beside its operations: their routes, and who signed in there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from clew.plugin.declarations import WebsiteSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import HTTPConnection
    from starlette.routing import Route
    from starlette.types import Scope as AsgiScope

    from clew.api.http_call import HttpServer
    from clew.api.operation_context import OperationContext
    from clew.api.problems import Problem
    from clew.core.scope import Scope
    from clew.engine.engine import Engine

#: The key of a connection's caller in its ASGI scope.
_CALLER_KEY: Final = "clew.caller"


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """A person who is logged in at a website, instead of sending the token."""

    #: The scope whose conversations are visible.
    viewer: Scope
    #: The caller to which idempotency keys belong: the same after the next login.
    name: str
    #: Returns whether the login still holds; long connections ask again and again.
    is_valid: Callable[[], Awaitable[bool]]


class Website(ABC):
    """Pages for browsers: part of no API, so neither OpenAPI nor JSON-RPC lists them."""

    @abstractmethod
    def make_routes(self, server: HttpServer) -> Sequence[Route]:
        """Return the routes of the pages and their files."""

    @abstractmethod
    def is_public(self, path: str) -> bool:
        """Return whether a path is served without a token; its route checks what it must."""

    async def identify(self, connection: HTTPConnection) -> Caller | Problem | None:
        """Return who sends a request without a token, or why not; ``None``: somebody unknown."""
        return None


def make_websites(engine: Engine) -> list[Website]:
    """Return the websites of all features."""
    made = [one.make() for one in engine.features.values(WebsiteSource)]
    return [one for one in made if isinstance(one, Website)]


def set_caller(scope: AsgiScope, caller: Caller) -> None:
    """Note who has sent a request."""
    scope[_CALLER_KEY] = caller


def get_caller(scope: AsgiScope) -> Caller | None:
    """Return who has sent a request, if that person is logged in; ``None`` for the token."""
    found = scope.get(_CALLER_KEY)
    return found if isinstance(found, Caller) else None


def limit_context(context: OperationContext, scope: AsgiScope) -> OperationContext:
    """Return the context for a request, with what its caller may see."""
    caller = get_caller(scope)
    return context if caller is None else replace(context, viewer=caller.viewer)
