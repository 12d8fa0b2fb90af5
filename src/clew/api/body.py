"""Bodies: read within a limit of size and time, parsed, and held against a model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from clew.api.problems import Declined, Problem, invalid
from clew.wire.json_text import parse_json

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails
    from starlette.requests import Request

#: Bytes of one request's body.
LARGEST = 10 * 1024 * 1024

Model = TypeVar("Model", bound=BaseModel)


async def read_body(request: Request, *, patience: float) -> bytes:
    """
    The whole body, which must have arrived after ``patience`` seconds.

    :raises Declined: if it is too large (without reading the rest) or takes too long
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > LARGEST:
        raise _too_large()
    try:
        async with asyncio.timeout(patience):
            return await _read(request)
    except TimeoutError:
        message = f"the body did not arrive within {patience:.0f} seconds"
        raise Declined(
            Problem(status=408, message=message, code="request_timeout", again=True)
        ) from None


async def _read(request: Request) -> bytes:
    received = bytearray()
    async for piece in request.stream():
        received += piece
        if len(received) > LARGEST:
            raise _too_large()
    return bytes(received)


def _too_large() -> Declined:
    message = f"the body is larger than {LARGEST // 1024 // 1024} MB"
    return Declined(Problem(status=413, message=message, code="request_too_large"))


def parse(raw: bytes) -> object:
    """
    The JSON in a body, with what no database can hold replaced.

    :raises Declined: if it is no JSON
    """
    try:
        return parse_json(raw)
    except ValueError as error:
        raise invalid(f"the body is no JSON: {error}", code="invalid_json") from None


def checked(value: object, model: type[Model]) -> Model:
    """
    The value as ``model``.

    :raises Declined: naming the first field that is wrong
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        param = _param(first)
        code = "missing_required_parameter" if first["type"] == "missing" else "invalid_type"
        where = f"{param}: " if param else "the body: "
        raise invalid(f"{where}{first['msg']}", param=param or None, code=code) from None


def _param(error: ErrorDetails) -> str:
    """``messages[0].content``; what names a branch of a union is left out."""
    path = ""
    for step in error["loc"]:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier() and step not in {"str", "int", "bool"}:
            path += f".{step}" if path else step
    return path
