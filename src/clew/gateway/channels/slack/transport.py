"""Calls to the web API, the socket's address, files; and what failures mean."""

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
from clew.gateway.calls import WHOLE, connected, content

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    import aiohttp

#: Seconds to wait where Slack does not say.
_WAIT = 30.0

_REFUSED = {
    "invalid_auth": "Slack does not know the token: copy it again from the app's page",
    "not_authed": "Slack was sent no token",
    "account_inactive": "the app was removed from the workspace: install it again",
    "token_revoked": "the token was revoked: install the app again",
    "token_expired": "the token has expired: install the app again",
    "not_allowed_token_type": "the two tokens are the wrong way round",
    "no_permission": "the app may not do this: look at its scopes",
    "link_disabled": "socket mode is off: switch it on on the app's page",
}
_UNKNOWN = frozenset(
    {"fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org"}
)
_GONE = frozenset(
    {"message_not_found", "cant_update_message", "edit_window_closed", "message_deleted"}
)
_FORMATTING = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})


class Api:
    """The web API of one app in one workspace."""

    def __init__(
        self, http: aiohttp.ClientSession, *, token: str, app_token: str, base_url: str
    ) -> None:
        self._http, self._token, self._app_token = http, token, app_token
        self._host = urlsplit(base_url).hostname or ""
        # Without its own retries: waiting is the gate's affair.
        # Any, since the library says little of what its calls take and give.
        self._web: Any = AsyncWebClient(
            token, base_url=base_url, session=http, retry_handlers=[], timeout=int(WHOLE)
        )

    async def call(self, method: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Something that changes Slack."""
        with translated():
            answer = await self._web.api_call(method, json=dict(given))
        return _data(answer.data)

    async def look(self, method: str, given: Mapping[str, str]) -> dict[str, Any]:
        """Something that is only looked up."""
        with translated():
            answer = await self._web.api_call(method, http_verb="GET", params=dict(given))
        return _data(answer.data)

    async def socket_url(self) -> str:
        """Where the next socket is to be opened."""
        with translated():
            answer = await self._web.apps_connections_open(app_token=self._app_token)
        return str(_data(answer.data)["url"])

    async def download(self, url: str, *, most: int) -> bytes:
        """A file of Slack's; the token is sent to nobody else."""
        host = urlsplit(url).hostname or ""
        if host != self._host and not host.endswith(".slack.com"):
            raise NotDelivered(f"the file is not at Slack but at {host}")
        headers = {"Authorization": f"Bearer {self._token}"}
        with translated():
            async with self._http.get(url, headers=headers, allow_redirects=False) as answer:
                return await content(answer, "Slack", most=most)


def _data(found: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


@contextmanager
def translated() -> Generator[None]:
    """Failures of the libraries as ours."""
    with connected("Slack"):
        try:
            yield
        except SlackApiError as error:
            raise translate(error) from None


def translate(error: SlackApiError) -> ChannelError:
    """What an answer means that is no success."""
    response: Any = error.response
    status: int = response.status_code
    answer = _data(response.data)
    name = str(answer.get("error", ""))
    if status == 429 or name in ("ratelimited", "rate_limited"):
        return Throttled(_seconds(response.headers))
    if status >= 500 or name in _UNKNOWN or not name:
        return OutcomeUnknown(f"Slack answered {status} {name}".rstrip())
    if name == "missing_scope":
        return AccountRefused(
            f"the app lacks the scope {answer.get('needed', '')}: add it, and install the app again"
        )
    if says := _REFUSED.get(name):
        return AccountRefused(says)
    return NotDelivered(
        f"Slack refused it: {name}", formatting=name in _FORMATTING, gone=name in _GONE
    )


def _seconds(headers: Mapping[str, Any]) -> float:
    said = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    return float(said) if str(said).isdigit() else _WAIT
