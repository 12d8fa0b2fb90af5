"""The endpoints of WhatsApp: its webhooks, and the handshake by which it checks the address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, PlainTextResponse, Response

from clew.api.endpoints import Endpoint, ResponseSpec
from clew.api.operation_scope import PUBLIC
from clew.api.schemas import Taken
from clew.api.webhook_dispatch import dispatch_webhook, respond_with_problem

if TYPE_CHECKING:
    from clew.api.http_call import HttpCall
    from clew.api.schemas import EmptyInput
    from clew.plugin.webhook_registry import WebhookRegistry

_PATH = "/whatsapp/{name}"


def make_endpoint(webhooks: WebhookRegistry) -> Endpoint:
    """Return the endpoint of webhooks; it needs no token, since signatures identify Meta."""

    async def receive_whatsapp(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
        """
        Pass a webhook to its channel.

        :raises ProblemError: if the body is too large or takes too long
        """
        answer = await dispatch_webhook(call, webhooks)
        if answer.status < 300:
            return JSONResponse({"accepted": True}, answer.status)
        return respond_with_problem(answer)

    return Endpoint(
        method="POST",
        path=_PATH,
        handler=receive_whatsapp,
        summary="Deliver a webhook of WhatsApp to a channel; its signature identifies Meta",
        scope=PUBLIC,
        responses={200: ResponseSpec(description="What it tells is stored", model=Taken)},
        problems=(400, 401, 404, 408, 413),
    )


def make_handshake(webhooks: WebhookRegistry) -> Endpoint:
    """Return the endpoint by which Meta checks the address before it delivers anything."""

    async def answer_handshake(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
        """Answer the challenge of a request that knows the verify token."""
        given = dict(call.request.query_params)
        answer = await dispatch_webhook(call, webhooks, query=given)
        if answer.status < 300:
            return PlainTextResponse(answer.message, answer.status)
        return respond_with_problem(answer)

    return Endpoint(
        method="GET",
        path=_PATH,
        handler=answer_handshake,
        summary="Answer WhatsApp's challenge; the verify token identifies Meta",
        scope=PUBLIC,
        responses={200: ResponseSpec(description="The challenge", media=("text/plain",))},
        problems=(403, 404),
    )
