"""Models and health."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

import structlog
from starlette.responses import JSONResponse, Response

from clew.api import health
from clew.api.chat_order import unknown_model
from clew.api.problems import SERVER, Problem
from clew.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request

    from clew.api.schemas import Nothing
    from clew.core.health import ChannelHealth
    from clew.engine.engine import Engine

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """What is asked about the server itself."""

    engine: Engine
    models: Sequence[str]
    #: The OpenAPI document, made when it is first asked for.
    description: Callable[[], dict[str, object]]

    async def list_models(self, request: Request, query: Nothing, body: Nothing) -> Response:
        return health.list_models(self.models)

    async def show_model(self, request: Request, query: Nothing, body: Nothing) -> Response:
        name = unquote(request.path_params["model"])
        if name not in self.models:
            return unknown_model(name, self.models).response()
        return JSONResponse(health.model_shape(name))

    async def alive(self, request: Request, query: Nothing, body: Nothing) -> Response:
        """The process answers."""
        return health.alive()

    async def ready(self, request: Request, query: Nothing, body: Nothing) -> Response:
        """
        The store can be read and written; how the channels are changes ``status``, not the answer.

        Another process may run what is not connected here. Anybody may ask, so why it is not is for
        the log.
        """
        try:
            await self.engine.check_store()
        except StoreError as error:
            log.warning("not_ready", error=str(error))
            # Anybody may ask: what exactly is wrong with the store is for the log.
            message = "the store cannot be read and written now; the log says why"
            return Problem(
                status=503, message=message, code="not_ready", type=SERVER, again=True
            ).response()
        channels = {name: _channel(channel) for name, channel in self.engine.channels.items()}
        well = all(channel.is_healthy for channel in self.engine.channels.values())
        return JSONResponse({"status": "ok" if well else "degraded", "channels": channels})

    async def describe(self, request: Request, query: Nothing, body: Nothing) -> Response:
        return JSONResponse(self.description())


def _channel(channel: ChannelHealth) -> dict[str, object]:
    return {
        "state": channel.state.value,
        "heard": _age(channel.heard_at),
        "event": _age(channel.event_at),
        "deliveries": {
            "waiting": channel.deliveries.waiting,
            "oldest": _age(channel.deliveries.oldest),
            "failed": channel.deliveries.failed,
            "given_up": channel.deliveries.given_up,
            "failing": channel.deliveries.failing,
        },
    }


def _age(moment: datetime | None) -> float | None:
    """Seconds since then."""
    return None if moment is None else round((datetime.now(UTC) - moment).total_seconds(), 1)
