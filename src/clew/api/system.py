"""Models and health."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import structlog
from starlette.responses import JSONResponse, Response

from clew.api.chat_order import unknown_model
from clew.api.problems import SERVER, Problem
from clew.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from clew.engine.engine import Engine

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """What is asked about the server itself."""

    engine: Engine
    models: Sequence[str]

    async def list_models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [_model(name) for name in self.models]})

    async def show_model(self, request: Request) -> Response:
        name = unquote(request.path_params["model"])
        if name not in self.models:
            return unknown_model(name, self.models).response()
        return JSONResponse(_model(name))

    async def alive(self, request: Request) -> Response:
        """The process answers."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """The store can be read and written."""
        try:
            await self.engine.check()
        except StoreError as error:
            log.warning("not_ready", error=str(error))
            # Anybody may ask: what exactly is wrong with the store is for the log.
            message = "the store cannot be read and written now; the log says why"
            return Problem(
                status=503, message=message, code="not_ready", type=SERVER, again=True
            ).response()
        return JSONResponse({"status": "ok"})


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "clew"}
