"""The endpoint of webhooks: requests of other programs, passed to the registered handler."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response

from clew.api.endpoints import Endpoint, ResponseSpec
from clew.api.operation_scope import PUBLIC
from clew.api.problems import INVALID_REQUEST, SERVER_ERROR, Problem
from clew.api.request_body import read_body
from clew.api.schemas import Taken
from clew.core.health import ChannelState
from clew.features.webhooks.webhook_registry import WebhookRequest

if TYPE_CHECKING:
    from clew.api.http_call import HttpCall
    from clew.api.schemas import EmptyInput
    from clew.features.webhooks.webhook_registry import WebhookRegistry, WebhookResponse

#: Seconds for which a request waits for a channel that is connecting.
_CONNECT_TIMEOUT: Final = 10.0
#: Seconds between two looks at such a channel.
_POLL_INTERVAL: Final = 0.02


def make_endpoint(webhooks: WebhookRegistry) -> Endpoint:
    """Return the endpoint; it needs no token, since signatures identify the senders."""

    async def receive_webhook(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
        """
        Pass the request to its handler.

        :raises ProblemError: if the body is too large or takes too long
        """
        request = call.request
        raw = await read_body(request, patience=call.server.timeouts.body)
        name = request.path_params["name"]
        await _wait_until_connected(webhooks, name, call)
        received = WebhookRequest(headers=dict(request.headers), body=raw)
        return _to_http(await webhooks.dispatch_request(name, received))

    return Endpoint(
        method="POST",
        path="/hooks/{name}",
        handler=receive_webhook,
        summary="Deliver an event to a channel; its signature identifies the sender",
        scope=PUBLIC,
        responses={202: ResponseSpec(description="The event is stored", model=Taken)},
        problems=(400, 401, 404, 408, 413),
    )


async def _wait_until_connected(webhooks: WebhookRegistry, name: str, call: HttpCall) -> None:
    """Wait for a channel that is connecting, as all do when a gateway starts; not for others."""
    clock = asyncio.get_running_loop()
    end = clock.time() + _CONNECT_TIMEOUT
    while webhooks.is_waiting(name) and clock.time() < end:
        health = call.engine.channels.get(name)
        is_connecting = health is not None and health.state is ChannelState.CONNECTING
        if not is_connecting or call.server.leaving.drain.is_set():
            return
        await asyncio.sleep(_POLL_INTERVAL)


def _to_http(answer: WebhookResponse) -> Response:
    if answer.status < 300:
        return JSONResponse({"accepted": True}, answer.status)
    return Problem(
        status=answer.status,
        message=answer.message,
        code=answer.code,
        type=SERVER_ERROR if answer.status >= 500 else INVALID_REQUEST,
        again=answer.is_retryable,
    ).to_response()
