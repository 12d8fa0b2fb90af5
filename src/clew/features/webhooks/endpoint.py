"""The endpoint of webhooks: requests of other programs, passed to the registered handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from clew.api.endpoints import Endpoint, ResponseSpec
from clew.api.operation_scope import PUBLIC
from clew.api.schemas import Taken
from clew.api.webhook_dispatch import dispatch_webhook, respond_with_problem

if TYPE_CHECKING:
    from clew.api.http_call import HttpCall
    from clew.api.schemas import EmptyInput
    from clew.plugin.webhook_registry import WebhookRegistry


def make_endpoint(webhooks: WebhookRegistry) -> Endpoint:
    """Return the endpoint; it needs no token, since signatures identify the senders."""

    async def receive_webhook(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
        """
        Pass the request to its handler.

        :raises ProblemError: if the body is too large or takes too long
        """
        answer = await dispatch_webhook(call, webhooks)
        if answer.status < 300:
            return JSONResponse({"accepted": True}, answer.status)
        return respond_with_problem(answer)

    return Endpoint(
        method="POST",
        path="/hooks/{name}",
        handler=receive_webhook,
        summary="Deliver an event to a channel; its signature identifies the sender",
        scope=PUBLIC,
        responses={202: ResponseSpec(description="The event is stored", model=Taken)},
        problems=(400, 401, 404, 408, 413),
    )
