"""Responses that need no engine: liveness and the list of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from clew.api.problems import SERVER_ERROR, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response

#: The model name of the agent itself.
AGENT_MODEL = "clew"

STARTING_PROBLEM = Problem(
    status=503,
    message="the gateway is starting: try again in a moment",
    code="not_ready",
    type=SERVER_ERROR,
    again=True,
)


def offered_models(configured: str) -> tuple[str, ...]:
    """Return the model names under which the agent is offered, its own first."""
    return tuple(dict.fromkeys([AGENT_MODEL, configured]))


def model_json(name: str) -> dict[str, object]:
    """Return a model in OpenAI's format."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "clew"}


def models_response(names: Sequence[str]) -> Response:
    """Return the response to ``GET /v1/models``."""
    return JSONResponse({"object": "list", "data": [model_json(name) for name in names]})


def liveness_response() -> Response:
    """Return the response to ``GET /healthz``."""
    return JSONResponse({"status": "ok"})
