"""Webhooks: requests of other programs, dispatched to the registered handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    WebhookHandler = Callable[["WebhookRequest"], Awaitable["WebhookResponse"]]


class WebhookRequest(Record):
    """An HTTP request as received; its sender is not authenticated."""

    #: Names in lower case.
    headers: Mapping[str, str]
    body: bytes
    #: Parameters of a GET request, by which a platform checks the address.
    query: Mapping[str, str] | None = None


class WebhookResponse(Record):
    """The response to a webhook request."""

    #: The HTTP status: 202 once the request is stored.
    status: int
    code: str = ""
    message: str = ""
    #: True if repeating the request is safe and may help.
    is_retryable: bool = False


UNKNOWN_WEBHOOK = WebhookResponse(status=404, code="not_found", message="there is no such hook")
WEBHOOK_NOT_READY = WebhookResponse(
    status=503,
    code="not_ready",
    message="nothing was stored: send it again in a moment",
    is_retryable=True,
)


class WebhookRegistry:
    """The webhooks of one process, by name."""

    def __init__(self) -> None:
        self._handlers: dict[str, WebhookHandler | None] = {}

    def declare_webhook(self, name: str) -> None:
        """Declare a webhook that has no handler yet."""
        self._handlers.setdefault(name, None)

    def register_handler(self, name: str, handler: WebhookHandler) -> None:
        """Register the handler that answers a webhook's requests."""
        self._handlers[name] = handler

    def unregister_handler(self, name: str, handler: WebhookHandler) -> None:
        """Remove the handler, unless another one has replaced it; callers are asked to retry."""
        if self._handlers.get(name) == handler:
            self._handlers[name] = None

    def is_waiting(self, name: str) -> bool:
        """Return whether a webhook is declared and has no handler."""
        return name in self._handlers and self._handlers[name] is None

    async def dispatch_request(self, name: str, request: WebhookRequest) -> WebhookResponse:
        """Pass a request to its handler and return the response."""
        if name not in self._handlers:
            return UNKNOWN_WEBHOOK
        handler = self._handlers[name]
        return WEBHOOK_NOT_READY if handler is None else await handler(request)
