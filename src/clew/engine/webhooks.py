"""Webhooks: requests of other programs, dispatched to the registered handlers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookRequest:
    """An HTTP request as received; its sender is not authenticated."""

    #: Names in lower case.
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookResponse:
    """The response to a webhook request."""

    #: The HTTP status: 202 once the request is stored.
    status: int
    code: str = ""
    message: str = ""
    #: Whether repeating the request is safe and may help.
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
        self._handlers: dict[
            str, Callable[[WebhookRequest], Awaitable[WebhookResponse]] | None
        ] = {}

    def declare_webhook(self, name: str) -> None:
        """Declare a webhook that has no handler yet."""
        self._handlers.setdefault(name, None)

    def register_handler(
        self, name: str, answer: Callable[[WebhookRequest], Awaitable[WebhookResponse]]
    ) -> None:
        """Register the handler that answers a webhook's requests."""
        self._handlers[name] = answer

    def unregister_handler(self, name: str) -> None:
        """Remove the handler; callers are asked to retry later."""
        self._handlers[name] = None

    async def dispatch_request(self, name: str, knock: WebhookRequest) -> WebhookResponse:
        """Pass a request to its handler and return the response."""
        if name not in self._handlers:
            return UNKNOWN_WEBHOOK
        answer = self._handlers[name]
        return WEBHOOK_NOT_READY if answer is None else await answer(knock)
