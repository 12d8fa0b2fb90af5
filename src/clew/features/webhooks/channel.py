"""The webhook channel: requests are answered once stored; deliveries carry an id."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

import httpx2

from clew.errors import (
    ChannelError,
    NotDelivered,
    NotSent,
    OutcomeUnknown,
    Throttled,
)
from clew.features.webhooks import codec
from clew.features.webhooks.settings import read_webhook_settings
from clew.features.webhooks.signing import WebhookRejected, sign_request, verify_request
from clew.gateway.channel import Channel, ChannelCapabilities
from clew.gateway.detached_calls import DetachedCalls
from clew.gateway.http import parse_retry_after
from clew.gateway.pushed_events import PushedEvents
from clew.plugin.webhook_registry import WEBHOOK_NOT_READY, WebhookResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from types import TracebackType

    from clew.core.channel_events import ButtonPressed, ChannelEvent, OutboundMessage
    from clew.core.route import Route
    from clew.core.sent_files import SentFile
    from clew.features.webhooks.settings import WebhookSettings
    from clew.gateway.channel import ChannelConfig
    from clew.plugin.webhook_registry import WebhookRegistry, WebhookRequest


#: Seconds for a request.
REQUEST_TIMEOUT = 20.0
#: Bytes of the largest file: it is sent as base64 in JSON.
_MAX_FILE_BYTES = 10_000_000
#: Seconds to wait where the other side names no time.
_DEFAULT_RETRY_AFTER = 5.0

ACCEPTED_RESPONSE = WebhookResponse(status=202)


def open_webhook_channel(config: ChannelConfig, webhooks: WebhookRegistry) -> Channel:
    """
    Create the channel, which receives what is posted to the webhook of its name.

    :raises SettingsError: if a setting is missing or invalid
    """
    return WebhookChannel(config, read_webhook_settings(config), webhooks)


class WebhookChannel(Channel):
    """The channel to one program that posts events and receives answers."""

    platform = codec.PLATFORM

    def __init__(
        self, config: ChannelConfig, settings: WebhookSettings, webhooks: WebhookRegistry
    ) -> None:
        # Two channels with the same name would share a request path.
        self.account = config.name
        self.capabilities = ChannelCapabilities(
            max_length=settings.max_length,
            markup="Markdown",
            threads=True,
            buttons=True,
            documents=settings.documents,
            max_file_bytes=_MAX_FILE_BYTES if settings.documents else 0,
            idempotent=True,
        )
        self._config, self._settings, self._webhooks = config, settings, webhooks
        self._pushed = PushedEvents()
        self._http: httpx2.AsyncClient | None = None
        self._calls = DetachedCalls()
        webhooks.declare_webhook(config.name)

    async def __aenter__(self) -> Self:
        self._http = httpx2.AsyncClient(timeout=REQUEST_TIMEOUT, follow_redirects=False)
        self._webhooks.register_handler(self.account, self._receive_request)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._webhooks.unregister_handler(self.account, self._receive_request)
        self._pushed.close()
        await self._calls.cancel_all()
        if self._http is not None:
            await self._http.aclose()

    # Incoming

    async def _receive_request(self, request: WebhookRequest) -> WebhookResponse:
        try:
            signed = verify_request(
                self._settings.keys, request.headers, request.body, now=time.time()
            )
            event = codec.parse_event(request.body, signed, label=self._config.label)
        except WebhookRejected as error:
            return WebhookResponse(status=error.status, code=error.code, message=error.message)
        return ACCEPTED_RESPONSE if await self._pushed.push([event]) else WEBHOOK_NOT_READY

    def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        return self._pushed.receive()

    # Outgoing

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return codec.render(message, longest=self._settings.max_length)

    def render_file(self, file: SentFile) -> str:
        return codec.render_file(file)

    def with_repeat_notice(self, chunk: str) -> str:
        return codec.with_repeat_notice(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        answer = await self._post_body(codec.build_message_body(route, chunk), key=key)
        return _read_message_id(answer) or key

    async def send_file(self, route: Route, chunk: str, content: bytes, *, key: str) -> str:
        return await self.send(route, codec.add_content(chunk, content), key=key)

    async def answer_button(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        body = codec.build_answer_body(pressed, text, closed=closed, became=became)
        await self._post_body(body, key=f"answer:{pressed.event}")

    async def _post_body(self, body: bytes, *, key: str) -> httpx2.Response:
        assert self._http is not None
        # A dot would end the id in the signed content.
        headers = sign_request(
            self._settings.keys[0], id_=key.replace(".", "_"), at=int(time.time()), body=body
        )
        more = {"content-type": "application/json", "idempotency-key": key}
        try:
            answer = await self._calls.run(
                self._http.post(self._settings.url, content=body, headers={**headers, **more})
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise NotSent(f"the webhook cannot be reached ({type(error).__name__})") from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
            raise NotDelivered("base_url is not an address that accepts POST requests") from None
        except (httpx2.HTTPError, TimeoutError) as error:
            what = type(error).__name__
            raise OutcomeUnknown(f"the connection to the webhook failed ({what})") from None
        if error := _to_channel_error(answer.status_code, answer.headers):
            raise error
        return answer


def _read_message_id(answer: httpx2.Response) -> str | None:
    """Return the id that the other side assigned, if any."""
    try:
        told: Any = answer.json()
        found: object = told["id"]
    except (ValueError, TypeError, LookupError):
        return None
    return str(found) if isinstance(found, (str, int)) and str(found) else None


def _to_channel_error(status: int, headers: Mapping[str, str]) -> ChannelError | None:
    """Return the error that a status stands for; ``None`` for success."""
    if status < 300:
        return None
    if status == 429 or (status == 503 and "retry-after" in headers):
        return Throttled(
            parse_retry_after(headers.get("retry-after", ""), otherwise=_DEFAULT_RETRY_AFTER)
        )
    if status >= 500 or status in (408, 425):
        return OutcomeUnknown(f"the webhook answered {status}")
    if status < 400:
        return NotDelivered(f"the webhook answered {status}: redirections are not followed")
    return NotDelivered(f"the webhook refused it: {status}")
