"""Dispatcher of requests to their methods, the same for every transport."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from clew.api.authorization import authorize_call
from clew.errors import ClewError
from clew.wire.errors import CallFailed, ErrorCode, RpcError
from clew.wire.framing import RpcErrorResponse, RpcResponse
from clew.wire.params import Params

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from clew.api.rpc.client import RpcCall
    from clew.wire.framing import RpcRequest

log = structlog.get_logger(__name__)

P = TypeVar("P", bound=Params)


async def dispatch_request(
    request: RpcRequest, call: RpcCall
) -> RpcResponse | RpcErrorResponse | None:
    """Process a request; return ``None`` for a notification, which gets no response."""
    try:
        done = await _run_handler(request, call)
    except ClewError as error:
        return _error_response(request, RpcError.from_exception(error))
    except Exception:  # a bug of ours: the caller gets an error, the connection stays
        log.exception("request_failed", method=request.method)
        return _error_response(request, RpcError.from_code(ErrorCode.INTERNAL))
    if request.id is None:
        return None
    return RpcResponse(id=request.id, result=done.model_dump(mode="json"))


def _error_response(request: RpcRequest, error: RpcError) -> RpcErrorResponse | None:
    return None if request.id is None else RpcErrorResponse(id=request.id, error=error)


async def _run_handler(request: RpcRequest, call: RpcCall) -> BaseModel:
    operations = call.context.operations
    operation = operations.get(request.method)
    if operation is None:
        raise CallFailed.from_code(
            ErrorCode.METHOD_NOT_FOUND, _unknown_method_message(request.method, operations.names)
        )
    given = validate_params(request.params, operation.definition.params)
    authorized = await authorize_call(operation.scope, call, dict(given))
    done: BaseModel = await operation.handler(authorized, given)
    return done


def _unknown_method_message(method: str, known: Iterable[str]) -> str:
    shown = method if len(method) <= 100 else f"{method[:99]}…"
    return f"there is no method {shown!r}{_suggest_name(method, known)}"


def _suggest_name(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name[:100], list(known), n=1, cutoff=0.6)
    return f": did you mean {near[0]}?" if near else ""


def validate_params(given: Mapping[str, object], model: type[P]) -> P:
    """
    Validate the arguments of a call.

    :raises CallFailed: naming the first invalid one
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        param = _format_location(first["loc"])
        message = f"{param}: {first['msg']}"
        if first["type"] == "extra_forbidden":
            message = f"there is no argument {param!r}{_suggest_name(param, model.model_fields)}"
        elif first["type"] == "missing":
            message = f"the argument {param!r} is missing"
        raise CallFailed.from_code(ErrorCode.INVALID_PARAMS, message, param=param) from None


def _format_location(path: tuple[int | str, ...]) -> str:
    """Format a location as ``attachments[0].name``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text[:200]
