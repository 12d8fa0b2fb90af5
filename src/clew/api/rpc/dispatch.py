"""Dispatcher of requests to their methods, the same for every transport."""

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

    from clew.api.rpc.context import RpcCall
    from clew.wire.framing import RpcRequest

log = structlog.get_logger(__name__)

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodHandler(Generic[P, R]):
    """The handler of a method."""

    run: Callable[[RpcCall, P], Awaitable[R]]
    #: Waits for earlier requests of the same client; reading, stopping and approving do not.
    is_ordered: bool


class _HandlerTable:
    def __init__(self) -> None:
        self.handlers: dict[str, MethodHandler[Any, Any]] = {}

    def add_ordered(
        self, method: RpcMethod[P, R], run: Callable[[RpcCall, P], Awaitable[R]]
    ) -> None:
        self.handlers[method.name] = MethodHandler(run=run, is_ordered=True)

    def add_concurrent(
        self, method: RpcMethod[P, R], run: Callable[[RpcCall, P], Awaitable[R]]
    ) -> None:
        self.handlers[method.name] = MethodHandler(run=run, is_ordered=False)


def _build_handlers() -> Mapping[str, MethodHandler[Any, Any]]:
    table = _HandlerTable()
    table.add_ordered(methods.OPEN, conversations.open_conversation)
    table.add_ordered(methods.NEW, conversations.new_conversation)
    table.add_ordered(methods.RESUME, conversations.resume_conversation)
    table.add_ordered(methods.RENAME, conversations.rename_conversation)
    table.add_ordered(methods.BRANCH, conversations.branch_conversation)
    table.add_ordered(methods.REWIND, conversations.rewind_conversation)
    table.add_ordered(methods.UNDO, conversations.undo_exchanges)
    table.add_ordered(methods.RETRY, conversations.retry_exchange)
    table.add_ordered(methods.CLOSE, conversations.close_conversation)
    table.add_ordered(methods.DELETE, conversations.delete_conversation)
    table.add_ordered(methods.UNDELETE, conversations.undelete_conversation)
    table.add_ordered(methods.COMPACT, conversations.compact_session)
    table.add_ordered(methods.SUBMIT, turns.submit_message)
    table.add_ordered(methods.CANCEL, turns.cancel_input)
    table.add_ordered(methods.EDIT, turns.edit_input)
    table.add_ordered(methods.SUBSCRIBE, turns.subscribe_events)
    table.add_ordered(methods.UNSUBSCRIBE, turns.unsubscribe_events)
    table.add_ordered(methods.RUN, settings.run_command)
    table.add_ordered(methods.CONFIG_SET, settings.set_config)
    table.add_ordered(methods.SET_MODEL, settings.set_model)
    table.add_concurrent(methods.LIST, conversations.list_conversations)
    table.add_concurrent(methods.STATUS, conversations.get_status)
    table.add_concurrent(methods.ENTRIES, conversations.list_entries)
    table.add_concurrent(methods.SEARCH, conversations.search_messages)
    table.add_concurrent(methods.INTERRUPT, turns.interrupt_turn)
    table.add_concurrent(methods.APPROVALS, turns.list_approvals)
    table.add_concurrent(methods.RESPOND, turns.answer_approval)
    table.add_concurrent(methods.QUEUE, turns.list_queue)
    table.add_concurrent(methods.COMMANDS, settings.list_commands)
    table.add_concurrent(methods.COMPLETE, settings.complete_text)
    table.add_concurrent(methods.CONFIG_GET, settings.get_config)
    table.add_concurrent(methods.MODELS, settings.list_models)
    table.add_concurrent(methods.DESCRIBE, settings.describe_agent)
    table.add_concurrent(methods.DISCOVER, settings.discover_methods)
    return table.handlers


HANDLERS = _build_handlers()


def is_ordered(method: str) -> bool:
    """Return True if a request waits for earlier requests of the same client."""
    handler = HANDLERS.get(method)
    return handler is not None and handler.is_ordered


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
    handler = HANDLERS.get(request.method)
    if handler is None:
        raise CallFailed.from_code(
            ErrorCode.METHOD_NOT_FOUND, _unknown_method_message(request.method)
        )
    return await handler.run(
        call, validate_params(request.params, METHODS_BY_NAME[request.method].params)
    )


def _unknown_method_message(method: str) -> str:
    shown = method if len(method) <= 100 else f"{method[:99]}…"
    return f"there is no method {shown!r}{_suggest_name(method, METHODS_BY_NAME)}"


def _suggest_name(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name[:100], known, n=1, cutoff=0.6)
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
