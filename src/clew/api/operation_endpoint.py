"""HTTP forms of operations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.responses import JSONResponse

from clew.api.authorization import authorize_call
from clew.api.endpoints import Endpoint, ResponseSpec
from clew.api.idempotency import idempotency_key
from clew.api.operation_call import AnsweredBefore
from clew.api.operation_scope import OperationScope
from clew.api.problems import ERROR_STATUSES, problem_from_error
from clew.api.schemas import AcceptedShape, EmptyInput
from clew.core.text import sanitize_text
from clew.errors import NotFound
from clew.wire.errors import CallFailed, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic import BaseModel
    from starlette.requests import Request
    from starlette.responses import Response

    from clew.api.http_call import HttpCall
    from clew.api.operations import AnyOperation, HttpBinding
    from clew.wire.params import Params

    RunHandler = Callable[[], Awaitable[BaseModel]]


def bind_operation(operation: AnyOperation, binding: HttpBinding) -> Endpoint:
    """Return the endpoint of an operation's HTTP form."""
    definition = operation.definition
    result = binding.result or definition.result
    scope = binding.scope or operation.scope

    async def run(call: HttpCall, query: BaseModel, body: BaseModel) -> Response:
        fields = {
            **path_fields(call.request, subject=binding.subject),
            **{name: getattr(query, name) for name in query.model_fields_set},
            **{name: getattr(body, name) for name in body.model_fields_set},
            **binding.fixed,
        }
        given = _build_input(definition.params, fields)
        authorized = await authorize_call(scope, call, dict(given))

        async def run_handler() -> BaseModel:
            done: BaseModel = await operation.handler(authorized, given)
            return done

        if binding.respond is not None:
            return await binding.respond(authorized, run_handler)
        return JSONResponse(_select_fields(await run_handler(), result), binding.status)

    problems = {ERROR_STATUSES[code][0] for code in definition.errors if code in ERROR_STATUSES}
    return Endpoint(
        method=binding.method,
        path=binding.path,
        handler=run,
        summary=binding.summary,
        query=binding.query,
        body=binding.body,
        headers=binding.headers,
        responses={binding.status: ResponseSpec(description=binding.answer, model=result)},
        problems=tuple(problems | ({400} if binding.query is not EmptyInput else set())),
        # Names in the input are checked once the input is complete.
        scope=OperationScope(callers=scope.callers),
    )


def _build_input(model: type[Params], fields: Mapping[str, Any]) -> Params:
    """Return the input of an operation; null stands for the default of an optional field."""
    # The HTTP form has validated each field already.
    return model.model_construct(
        **{
            name: value
            for name, value in fields.items()
            if value is not None or model.model_fields[name].is_required()
        }
    )


def _select_fields(done: BaseModel, model: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of a result that its HTTP form has."""
    return done.model_dump(mode="json", include=set(model.model_fields))


async def show_afterwards(call: HttpCall, run_handler: RunHandler) -> Response:
    """Run the handler, and respond with the conversation."""
    await run_handler()
    return await show_conversation(call)


async def show_conversation(call: HttpCall, *_: BaseModel) -> Response:
    shown = await call.context.show_conversation(call.conversation)
    return JSONResponse(shown.model_dump(mode="json"))


async def answer_once(call: HttpCall, run_handler: RunHandler) -> Response:
    """Run the handler of a message; its answer is stored for requests with the same key."""
    try:
        status, answer = 202, _select_fields(await run_handler(), AcceptedShape)
    except AnsweredBefore as error:
        return _stored_response(error.status, json.loads(error.answer))
    except CallFailed as error:
        if error.code != ErrorCode.REJECTED:
            raise
        problem = problem_from_error(error)
        status, answer = problem.status, problem.json_body
    if (key := idempotency_key(call.request)) is not None:
        await call.engine.requests.store_answer(key, status=status, answer=json.dumps(answer))
    return _stored_response(status, answer)


def _stored_response(status: int, answer: dict[str, Any]) -> Response:
    headers = {"x-should-retry": "false"} if status >= 400 else None
    return JSONResponse(answer, status, headers=headers)


def path_fields(request: Request, *, subject: str = "conversation") -> dict[str, str]:
    """
    Return the fields of an input that are in the path; ``subject`` is named as ``{id}``.

    :raises NotFound: if it cannot be the name of a conversation
    """
    return {
        subject if name == "id" else name: _parse_name(value) if name == "id" else unquote(value)
        for name, value in request.path_params.items()
    }


def _parse_name(escaped: str) -> str:
    """Return the name of a conversation, which may contain escaped slashes."""
    try:
        name = unquote(escaped, errors="strict")
    except UnicodeDecodeError:
        raise NotFound("conversation", escaped) from None
    if name != sanitize_text(name):
        raise NotFound("conversation", sanitize_text(name))
    return name
