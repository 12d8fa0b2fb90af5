"""HTTP form of an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.responses import JSONResponse

from clew.api.endpoints import Endpoint, ResponseSpec
from clew.api.rpc.context import HttpCall
from clew.api.schemas import EmptyInput
from clew.core.text import sanitize_text
from clew.errors import NotFound
from clew.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel
    from starlette.requests import Request
    from starlette.responses import Response

    from clew.api.endpoints import AnyEndpoint
    from clew.api.rpc.context import RpcContext
    from clew.wire.methods import AnyRpcMethod

#: HTTP statuses of the errors that an operation declares.
_STATUSES: Mapping[ErrorCode, int] = {
    ErrorCode.INVALID_VALUE: 400,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.REJECTED: 409,
    ErrorCode.TITLE_TAKEN: 409,
    ErrorCode.KEY_REUSED: 422,
}


def bind_operation(definition: AnyRpcMethod, context: RpcContext) -> AnyEndpoint:
    """Return the endpoint of an operation that has an HTTP form."""
    operation = context.operations[definition.name]
    http = operation.http
    assert http is not None

    async def run(request: Request, query: BaseModel, body: BaseModel) -> Response:
        fields = {
            **_path_fields(request),
            **query.model_dump(exclude_unset=True),
            **body.model_dump(exclude_unset=True),
        }
        # The HTTP form has validated each field already.
        given = definition.params.model_construct(**fields)
        done = await operation.handler(HttpCall(context=context), given)
        return JSONResponse(done.model_dump(mode="json"), http.status)

    problems = {_STATUSES[code] for code in definition.errors if code in _STATUSES}
    if http.query is not EmptyInput:
        problems.add(400)
    return Endpoint(
        method=http.method,
        path=http.path,
        handler=run,
        summary=http.summary,
        query=http.query,
        body=http.body,
        responses={
            http.status: ResponseSpec(
                description=http.answer, model=http.result or definition.result
            )
        },
        problems=tuple(problems),
    )


def _path_fields(request: Request) -> dict[str, str]:
    """Return the fields of the input that are in the path."""
    return {
        "conversation" if name == "id" else name: name_in_path(request)
        if name == "id"
        else unquote(value)
        for name, value in request.path_params.items()
    }


def name_in_path(request: Request) -> str:
    """
    Return the conversation name in the path, which may contain escaped slashes.

    :raises NotFound: if it cannot be a name
    """
    escaped: str = request.path_params["id"]
    try:
        name = unquote(escaped, errors="strict")
    except UnicodeDecodeError:
        raise NotFound("conversation", escaped) from None
    if name != sanitize_text(name):
        raise NotFound("conversation", sanitize_text(name))
    return name
