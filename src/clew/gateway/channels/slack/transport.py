"""Calls to the Web API, socket URLs, downloads, and the mapping of failures."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from clew.errors import (
    AccountRefused,
    ChannelError,
    NotDelivered,
    OutcomeUnknown,
    Throttled,
)
from clew.gateway.http import TOTAL_TIMEOUT, read_file_content, translate_http_errors

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    import aiohttp

#: Seconds to wait where Slack names no time.
_DEFAULT_RETRY_AFTER = 30.0

_AUTH_ERRORS = {
    "invalid_auth": "Slack does not know the token: copy it again from the app's page",
    "not_authed": "Slack was sent no token",
    "account_inactive": "the app was removed from the workspace: install it again",
    "token_revoked": "the token was revoked: install the app again",
    "token_expired": "the token has expired: install the app again",
    "not_allowed_token_type": "the two tokens are the wrong way round",
    "no_permission": "the app may not do this: look at its scopes",
    "link_disabled": "socket mode is off: switch it on on the app's page",
}
_UNKNOWN_OUTCOME_ERRORS = frozenset(
    {"fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org"}
)
_GONE_ERRORS = frozenset(
    {"message_not_found", "cant_update_message", "edit_window_closed", "message_deleted"}
)
_FORMATTING_ERRORS = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})


class SlackApi:
    """The Web API of one app in one workspace."""

    def __init__(
        self, http: aiohttp.ClientSession, *, token: str, app_token: str, base_url: str
    ) -> None:
        self._http, self._token, self._app_token = http, token, app_token
        self._host = urlsplit(base_url).hostname or ""
        # Without the library's retries: the rate limiter does the waiting.
        # Any, since the library's types are incomplete.
        self._web: Any = AsyncWebClient(
            token, base_url=base_url, session=http, retry_handlers=[], timeout=int(TOTAL_TIMEOUT)
        )

    async def call_api(self, method: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method that changes something."""
        with translate_errors():
            answer = await self._web.api_call(method, json=dict(given))
        return _as_dict(answer.data)

    async def look_up(self, method: str, given: Mapping[str, str]) -> dict[str, Any]:
        """Call a method that only reads."""
        with translate_errors():
            answer = await self._web.api_call(method, http_verb="GET", params=dict(given))
        return _as_dict(answer.data)

    async def get_socket_url(self) -> str:
        """Return the URL of the next socket."""
        with translate_errors():
            answer = await self._web.apps_connections_open(app_token=self._app_token)
        return str(_as_dict(answer.data)["url"])

    async def download_file(self, url: str, *, most: int) -> bytes:
        """Download a file from Slack; the token is sent to no other host."""
        host = urlsplit(url).hostname or ""
        if host != self._host and not host.endswith(".slack.com"):
            raise NotDelivered(f"the file is not at Slack but at {host}")
        headers = {"Authorization": f"Bearer {self._token}"}
        with translate_errors():
            async with self._http.get(url, headers=headers, allow_redirects=False) as answer:
                return await read_file_content(answer, "Slack", most=most)


def _as_dict(found: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


@contextmanager
def translate_errors() -> Generator[None]:
    """Translate failures of the libraries into channel errors."""
    with translate_http_errors("Slack"):
        try:
            yield
        except SlackApiError as error:
            raise to_channel_error(error) from None


def to_channel_error(error: SlackApiError) -> ChannelError:
    """Return the channel error for an unsuccessful response."""
    response: Any = error.response
    status: int = response.status_code
    answer = _as_dict(response.data)
    name = str(answer.get("error", ""))
    if status == 429 or name in ("ratelimited", "rate_limited"):
        return Throttled(_parse_retry_after(response.headers))
    if status >= 500 or name in _UNKNOWN_OUTCOME_ERRORS or not name:
        return OutcomeUnknown(f"Slack answered {status} {name}".rstrip())
    if name == "missing_scope":
        return AccountRefused(
            f"the app lacks the scope {answer.get('needed', '')}: add it, and install the app again"
        )
    if says := _AUTH_ERRORS.get(name):
        return AccountRefused(says)
    return NotDelivered(
        f"Slack refused it: {name}",
        formatting=name in _FORMATTING_ERRORS,
        gone=name in _GONE_ERRORS,
    )


def _parse_retry_after(headers: Mapping[str, Any]) -> float:
    said = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    return float(said) if str(said).isdigit() else _DEFAULT_RETRY_AFTER
