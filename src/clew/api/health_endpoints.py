"""Endpoints for models and health."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

import structlog
from starlette.responses import JSONResponse, Response

from clew.api import health
from clew.api.chat_request import unknown_model_problem
from clew.api.problems import SERVER_ERROR, Problem
from clew.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request

    from clew.api.schemas import EmptyInput
    from clew.core.health import ChannelHealth
    from clew.engine.engine import Engine

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemEndpoints:
    """The endpoints about the server itself."""

    engine: Engine
    models: Sequence[str]
    #: Builds the OpenAPI document when it is first requested.
    openapi: Callable[[], dict[str, object]]

    async def list_models(self, request: Request, query: EmptyInput, body: EmptyInput) -> Response:
        return health.models_response(self.models)

    async def show_model(self, request: Request, query: EmptyInput, body: EmptyInput) -> Response:
        name = unquote(request.path_params["model"])
        if name not in self.models:
            return unknown_model_problem(name, self.models).to_response()
        return JSONResponse(health.model_json(name))

    async def check_liveness(
        self, request: Request, query: EmptyInput, body: EmptyInput
    ) -> Response:
        """Confirm that the process answers."""
        return health.liveness_response()

    async def check_readiness(
        self, request: Request, query: EmptyInput, body: EmptyInput
    ) -> Response:
        """
        Check that the store can be read and written.

        The state of the channels changes ``status``, not the HTTP status: another process
        may run a channel that is not connected here. The endpoint is public, so details go
        to the log.
        """
        try:
            await self.engine.check_store()
        except StoreError as error:
            log.warning("not_ready", error=str(error))
            # The endpoint is public: details about the store go to the log.
            message = "the store cannot be read and written now; the log says why"
            return Problem(
                status=503, message=message, code="not_ready", type=SERVER_ERROR, again=True
            ).to_response()
        channels = {name: _channel_json(channel) for name, channel in self.engine.channels.items()}
        well = all(channel.is_healthy for channel in self.engine.channels.values())
        return JSONResponse({"status": "ok" if well else "degraded", "channels": channels})

    async def show_openapi(self, request: Request, query: EmptyInput, body: EmptyInput) -> Response:
        return JSONResponse(self.openapi())


def _channel_json(channel: ChannelHealth) -> dict[str, object]:
    return {
        "state": channel.state.value,
        "heard": _seconds_since(channel.heard_at),
        "event": _seconds_since(channel.event_at),
        "deliveries": {
            "waiting": channel.deliveries.waiting,
            "oldest": _seconds_since(channel.deliveries.oldest),
            "failed": channel.deliveries.failed,
            "given_up": channel.deliveries.given_up,
            "failing": channel.deliveries.failing,
        },
    }


def _seconds_since(moment: datetime | None) -> float | None:
    """Return the seconds since then."""
    return None if moment is None else round((datetime.now(UTC) - moment).total_seconds(), 1)
