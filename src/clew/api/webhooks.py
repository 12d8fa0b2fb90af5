"""Webhooks: requests of other programs, passed to the registered handler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from clew.api.problems import INVALID_REQUEST, SERVER_ERROR, Problem
from clew.api.request_body import read_body
from clew.engine.webhooks import WebhookRequest

if TYPE_CHECKING:
    from starlette.requests import Request

    from clew.api.schemas import EmptyInput
    from clew.api.timeouts import ApiTimeouts
    from clew.engine.webhooks import WebhookRegistry


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookEndpoint:
    """The endpoint of all registered webhooks."""

    registry: WebhookRegistry
    timeouts: ApiTimeouts

    async def receive_webhook(
        self, request: Request, query: EmptyInput, body: EmptyInput
    ) -> Response:
        """
        Pass the request to its handler.

        :raises ProblemError: if the body is too large or takes too long
        """
        raw = await read_body(request, patience=self.timeouts.body)
        knock = WebhookRequest(headers=dict(request.headers), body=raw)
        answer = await self.registry.dispatch_request(request.path_params["name"], knock)
        if answer.status < 300:
            return JSONResponse({"accepted": True}, answer.status)
        return Problem(
            status=answer.status,
            message=answer.message,
            code=answer.code,
            type=SERVER_ERROR if answer.status >= 500 else INVALID_REQUEST,
            again=answer.is_retryable,
        ).to_response()
