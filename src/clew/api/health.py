"""Answers that need no engine: the process lives, the names under which the agent is on offer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from clew.api.problems import SERVER, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response

#: The name under which the agent itself is on offer.
AGENT = "clew"

STARTING = Problem(
    status=503,
    message="the gateway is starting: try again in a moment",
    code="not_ready",
    type=SERVER,
    again=True,
)


def model_names(configured: str) -> tuple[str, ...]:
    """Return the names under which the agent is on offer, its own first."""
    return tuple(dict.fromkeys([AGENT, configured]))


def model_shape(name: str) -> dict[str, object]:
    """Return a model as OpenAI's API describes it."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "clew"}


def list_models(names: Sequence[str]) -> Response:
    """Answer ``GET /v1/models``."""
    return JSONResponse({"object": "list", "data": [model_shape(name) for name in names]})


def alive() -> Response:
    """Answer ``GET /healthz``."""
    return JSONResponse({"status": "ok"})
