"""Webhooks: requests of other programs, passed to the registered handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from clew.api.problems import INVALID_REQUEST, SERVER_ERROR, Problem
from clew.api.request_body import read_body
from clew.engine.webhooks import WebhookRequest

if TYPE_CHECKING:
    from clew.api.http_call import HttpCall
    from clew.api.schemas import EmptyInput


async def receive_webhook(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    """
    Pass the request to its handler.

    :raises ProblemError: if the body is too large or takes too long
    """
    request = call.request
    raw = await read_body(request, patience=call.server.timeouts.body)
    knock = WebhookRequest(headers=dict(request.headers), body=raw)
    answer = await call.engine.webhooks.dispatch_request(request.path_params["name"], knock)
    if answer.status < 300:
        return JSONResponse({"accepted": True}, answer.status)
    return Problem(
        status=answer.status,
        message=answer.message,
        code=answer.code,
        type=SERVER_ERROR if answer.status >= 500 else INVALID_REQUEST,
        again=answer.is_retryable,
    ).to_response()
