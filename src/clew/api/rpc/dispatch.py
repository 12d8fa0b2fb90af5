"""The dispatcher: a request in, what it has come to out; the same for every transport."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from clew.api.rpc import conversations, settings, turns
from clew.errors import ClewError
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode, RpcError
from clew.wire.framing import RpcErrorResponse, RpcResponse
from clew.wire.methods import METHODS_BY_NAME, RpcMethod
from clew.wire.params import Params

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from clew.api.rpc.office import Call
    from clew.wire.framing import RpcRequest

log = structlog.get_logger(__name__)

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class Handler(Generic[P, R]):
    """How a method is carried out."""

    run: Callable[[Call, P], Awaitable[R]]
    #: Waits for what the same client has asked before. Looking, stopping and answering do not.
    in_line: bool


class _Table:
    def __init__(self) -> None:
        self.handlers: dict[str, Handler[Any, Any]] = {}

    def in_line(self, method: RpcMethod[P, R], run: Callable[[Call, P], Awaitable[R]]) -> None:
        self.handlers[method.name] = Handler(run=run, in_line=True)

    def at_once(self, method: RpcMethod[P, R], run: Callable[[Call, P], Awaitable[R]]) -> None:
        self.handlers[method.name] = Handler(run=run, in_line=False)


def _handlers() -> Mapping[str, Handler[Any, Any]]:
    table = _Table()
    table.in_line(methods.OPEN, conversations.open_)
    table.in_line(methods.NEW, conversations.new)
    table.in_line(methods.RESUME, conversations.resume)
    table.in_line(methods.RENAME, conversations.rename)
    table.in_line(methods.BRANCH, conversations.branch)
    table.in_line(methods.REWIND, conversations.rewind)
    table.in_line(methods.UNDO, conversations.undo)
    table.in_line(methods.RETRY, conversations.retry)
    table.in_line(methods.CLOSE, conversations.close)
    table.in_line(methods.DELETE, conversations.delete)
    table.in_line(methods.UNDELETE, conversations.undelete)
    table.in_line(methods.COMPACT, conversations.compact)
    table.in_line(methods.SUBMIT, turns.submit)
    table.in_line(methods.CANCEL, turns.cancel)
    table.in_line(methods.EDIT, turns.edit)
    table.in_line(methods.SUBSCRIBE, turns.subscribe)
    table.in_line(methods.UNSUBSCRIBE, turns.unsubscribe)
    table.in_line(methods.RUN, settings.run)
    table.in_line(methods.CONFIG_SET, settings.set_config)
    table.in_line(methods.SET_MODEL, settings.set_model)
    table.at_once(methods.LIST, conversations.list_)
    table.at_once(methods.STATUS, conversations.status)
    table.at_once(methods.ENTRIES, conversations.entries)
    table.at_once(methods.SEARCH, conversations.search)
    table.at_once(methods.INTERRUPT, turns.interrupt)
    table.at_once(methods.APPROVALS, turns.approvals)
    table.at_once(methods.RESPOND, turns.respond)
    table.at_once(methods.QUEUE, turns.queue)
    table.at_once(methods.COMMANDS, settings.commands)
    table.at_once(methods.COMPLETE, settings.complete)
    table.at_once(methods.CONFIG_GET, settings.get_config)
    table.at_once(methods.MODELS, settings.models)
    table.at_once(methods.DESCRIBE, settings.describe)
    table.at_once(methods.DISCOVER, settings.discover)
    return table.handlers


HANDLERS = _handlers()


def waits_in_line(method: str) -> bool:
    """Whether a request waits for those that the same client has made before."""
    handler = HANDLERS.get(method)
    return handler is not None and handler.in_line


async def carry_out(request: RpcRequest, call: Call) -> RpcResponse | RpcErrorResponse | None:
    """What a request has come to; ``None`` for a notification, which is not answered."""
    try:
        done = await _carried_out(request, call)
    except ClewError as error:
        return _failed(request, RpcError.from_exception(error))
    except Exception:
        log.exception("request_failed", method=request.method)
        return _failed(request, RpcError.from_code(ErrorCode.INTERNAL))
    if request.id is None:
        return None
    return RpcResponse(id=request.id, result=done.model_dump(mode="json"))


def _failed(request: RpcRequest, error: RpcError) -> RpcErrorResponse | None:
    return None if request.id is None else RpcErrorResponse(id=request.id, error=error)


async def _carried_out(request: RpcRequest, call: Call) -> BaseModel:
    handler = HANDLERS.get(request.method)
    if handler is None:
        raise CallFailed.from_code(ErrorCode.METHOD_NOT_FOUND, _unknown(request.method))
    return await handler.run(call, checked(request.params, METHODS_BY_NAME[request.method].params))


def _unknown(method: str) -> str:
    shown = method if len(method) <= 100 else f"{method[:99]}…"
    return f"there is no method {shown!r}{_meant(method, METHODS_BY_NAME)}"


def _meant(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name[:100], known, n=1, cutoff=0.6)
    return f": did you mean {near[0]}?" if near else ""


def checked(given: Mapping[str, object], model: type[P]) -> P:
    """
    The arguments of a call.

    :raises CallFailed: naming the first one that is wrong
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        param = _param(first["loc"])
        message = f"{param}: {first['msg']}"
        if first["type"] == "extra_forbidden":
            message = f"there is no argument {param!r}{_meant(param, model.model_fields)}"
        elif first["type"] == "missing":
            message = f"the argument {param!r} is missing"
        raise CallFailed.from_code(ErrorCode.INVALID_PARAMS, message, param=param) from None


def _param(path: tuple[int | str, ...]) -> str:
    """``attachments[0].name``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text[:200]
