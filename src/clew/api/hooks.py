"""Hooks: what other programs hand in, passed on to whoever opened the door."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from clew.api.body import read_body
from clew.api.problems import INVALID, SERVER, Problem
from clew.engine.doors import WebhookRequest

if TYPE_CHECKING:
    from starlette.requests import Request

    from clew.api.pace import Pace
    from clew.api.schemas import Nothing
    from clew.engine.doors import WebhookRegistry


@dataclass(frozen=True, kw_only=True, slots=True)
class Hooks:
    """The paths under which doors can be reached."""

    doors: WebhookRegistry
    pace: Pace

    async def hand_in(self, request: Request, query: Nothing, body: Nothing) -> Response:
        """:raises Declined: if the body is too large or takes too long"""
        raw = await read_body(request, patience=self.pace.body)
        knock = WebhookRequest(headers=dict(request.headers), body=raw)
        answer = await self.doors.dispatch_request(request.path_params["name"], knock)
        if answer.status < 300:
            return JSONResponse({"accepted": True}, answer.status)
        return Problem(
            status=answer.status,
            message=answer.message,
            code=answer.code,
            type=SERVER if answer.status >= 500 else INVALID,
            again=answer.is_retryable,
        ).response()
