"""Web pages that a server has beside its operations: their routes, and who signed in there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from clew.plugin.declarations import WebsiteSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import HTTPConnection
    from starlette.routing import Route

    from clew.api.caller import WebCaller
    from clew.api.http_call import HttpServer
    from clew.api.problems import Problem
    from clew.engine.engine import Engine


class Website(ABC):
    """Pages for browsers: part of no API, so neither OpenAPI nor JSON-RPC lists them."""

    @abstractmethod
    def make_routes(self, server: HttpServer) -> Sequence[Route]:
        """Return the routes of the pages and their files."""

    @abstractmethod
    def is_public(self, path: str) -> bool:
        """Return whether a path is served without a token; its route checks what it must."""

    async def identify(self, connection: HTTPConnection) -> WebCaller | Problem | None:
        """Return who sends a request without a token, or why not; ``None``: somebody unknown."""
        return None


def make_websites(engine: Engine) -> list[Website]:
    """Return the websites of all features."""
    made = [one.make() for one in engine.features.values(WebsiteSource)]
    return [one for one in made if isinstance(one, Website)]
