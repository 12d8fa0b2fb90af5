"""Request bodies: read within a size and time limit, parsed and validated."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from clew.api.problems import Problem, ProblemError, invalid_request
from clew.wire.json import parse_json

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails
    from starlette.requests import Request

#: Bytes of one request body.
MAX_BODY_BYTES = 10 * 1024 * 1024

Model = TypeVar("Model", bound=BaseModel)


async def read_body(request: Request, *, patience: float) -> bytes:
    """
    Return the whole body, which must arrive within ``patience`` seconds.

    :raises ProblemError: if it is too large (without reading the rest) or takes too long
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > MAX_BODY_BYTES:
        raise _too_large_error()
    try:
        async with asyncio.timeout(patience):
            return await _read_limited(request)
    except TimeoutError:
        message = f"the body did not arrive within {patience:.0f} seconds"
        raise ProblemError(
            Problem(status=408, message=message, code="request_timeout", again=True)
        ) from None


async def _read_limited(request: Request) -> bytes:
    received = bytearray()
    async for piece in request.stream():
        received += piece
        if len(received) > MAX_BODY_BYTES:
            raise _too_large_error()
    return bytes(received)


def _too_large_error() -> ProblemError:
    message = f"the body is larger than {MAX_BODY_BYTES // 1024 // 1024} MB"
    return ProblemError(Problem(status=413, message=message, code="request_too_large"))


def parse_json_body(raw: bytes) -> object:
    """
    Parse the JSON of a body; characters that no database can store are replaced.

    :raises ProblemError: if it is not JSON
    """
    try:
        return parse_json(raw)
    except ValueError as error:
        raise invalid_request(f"the body is not valid JSON: {error}", code="invalid_json") from None


def validate_model(value: object, model: type[Model]) -> Model:
    """
    Validate the value against ``model``.

    :raises ProblemError: naming the first invalid field
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        param = _format_location(first)
        code = "missing_required_parameter" if first["type"] == "missing" else "invalid_type"
        where = f"{param}: " if param else "the body: "
        raise invalid_request(f"{where}{first['msg']}", param=param or None, code=code) from None


def _format_location(error: ErrorDetails) -> str:
    """Format a location as ``messages[0].content``, without the names of union branches."""
    path = ""
    for step in error["loc"]:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier() and step not in {"str", "int", "bool"}:
            path += f".{step}" if path else step
    return path
