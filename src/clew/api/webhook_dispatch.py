"""Requests of other programs to a channel, passed to the handler that the channel registered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clew.api.problems import INVALID_REQUEST, SERVER_ERROR, Problem
from clew.api.request_body import read_body
from clew.core.health import ChannelState
from clew.plugin.webhook_registry import WebhookRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from clew.api.http_call import HttpCall
    from clew.plugin.webhook_registry import WebhookRegistry, WebhookResponse

#: Seconds for which a request waits for a channel that is connecting.
_CONNECT_TIMEOUT: Final = 10.0
#: Seconds between two looks at such a channel.
_POLL_INTERVAL: Final = 0.02


async def dispatch_webhook(
    call: HttpCall, webhooks: WebhookRegistry, *, query: Mapping[str, str] | None = None
) -> WebhookResponse:
    """
    Pass a request to the handler of the channel that its path names.

    :raises ProblemError: if the body is too large or takes too long
    """
    request = call.request
    raw = b"" if query is not None else await read_body(request, patience=call.server.timeouts.body)
    name = request.path_params["name"]
    await _wait_until_connected(webhooks, name, call)
    received = WebhookRequest(headers=dict(request.headers), body=raw, query=query)
    return await webhooks.dispatch_request(name, received)


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


def respond_with_problem(answer: WebhookResponse) -> Response:
    """Return the response to a request that a handler refused."""
    return Problem(
        status=answer.status,
        message=answer.message,
        code=answer.code,
        type=SERVER_ERROR if answer.status >= 500 else INVALID_REQUEST,
        again=answer.is_retryable,
    ).to_response()
