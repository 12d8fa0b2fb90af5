"""Endpoints for models and health."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

import structlog
from starlette.responses import JSONResponse

from clew.api import health
from clew.api.auth import find_problem
from clew.api.chat_request import unknown_model_problem
from clew.api.problems import SERVER_ERROR, Problem
from clew.errors import StoreError
from clew.plugin.declarations import HealthSource

if TYPE_CHECKING:
    from starlette.responses import Response

    from clew.api.http_call import HttpCall
    from clew.api.schemas import EmptyInput
    from clew.core.health import ChannelHealth

log = structlog.get_logger(__name__)


async def list_models(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    return health.models_response(call.server.models)


async def show_model(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    name, models = unquote(call.request.path_params["model"]), call.server.models
    if name not in models:
        return unknown_model_problem(name, models).to_response()
    return JSONResponse(health.model_json(name))


async def check_liveness(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    """Confirm that the process answers."""
    return health.liveness_response()


async def check_readiness(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    """
    Check that the store can be read and written.

    The state of the channels changes ``status``, not the HTTP status: another process may
    run a channel that is not connected here. Nor does that of parts which features use. The
    endpoint is public, so details go to the log, and reasons to clients with the token.
    """
    try:
        await call.engine.check_store()
    except StoreError as error:
        log.warning("not_ready", error=str(error))
        message = "the store cannot be read and written now; the log says why"
        return Problem(
            status=503, message=message, code="not_ready", type=SERVER_ERROR, again=True
        ).to_response()
    found = call.engine.channels
    channels = {name: _channel_json(channel) for name, channel in found.items()}
    well = all(channel.is_healthy for channel in found.values())
    return JSONResponse(
        {
            "status": "ok" if well else "degraded",
            "channels": channels,
            "parts": _read_parts(call),
        }
    )


def _read_parts(call: HttpCall) -> dict[str, dict[str, object]]:
    """Return the state of the parts that features use, as ``FEATURE:NAME``."""
    api = call.context.settings.api
    is_known = find_problem(call.request, api.token, api.origins) is None
    return {
        f"{source.name}:{name}": {"state": part.state, "why": part.why if is_known else None}
        for source in call.engine.features.values(HealthSource)
        for name, part in source.read().items()
    }


async def show_openapi(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    return JSONResponse(call.server.openapi)


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
