"""Calls to the Web API, socket URLs, downloads, and the mapping of failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clew.errors import (
    AccountRefused,
    ChannelError,
    NotDelivered,
    NotSent,
    OutcomeUnknown,
    Throttled,
)
from clew.gateway.http import UPLOAD_TIMEOUT, parse_json_object, parse_retry_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.gateway.channels.slack.messages import UploadedDocument
    from clew.gateway.http import PlatformHttp

#: Seconds to wait where Slack names no time.
_DEFAULT_RETRY_AFTER = 30.0

_AUTH_ERRORS = {
    "invalid_auth": "Slack does not know the token: copy it again from the app's page",
    "not_authed": "Slack was sent no token",
    "account_inactive": "the app was removed from the workspace: install it again",
    "token_revoked": "the token was revoked: install the app again",
    "token_expired": "the token has expired: install the app again",
    "not_allowed_token_type": "the two tokens are swapped",
    "no_permission": "the app may not do this: check its scopes",
    "link_disabled": "socket mode is off: enable it on the app's page",
}
_UNKNOWN_OUTCOME_ERRORS = frozenset(
    {"fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org"}
)
_GONE_ERRORS = frozenset(
    {"message_not_found", "cant_update_message", "edit_window_closed", "message_deleted"}
)
_FORMATTING_ERRORS = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})


class _MissingScope(AccountRefused):
    """A permission that the app was not given."""


class SlackApi:
    """The Web API of one app in one workspace."""

    def __init__(self, http: PlatformHttp, *, token: str, app_token: str, base_url: str) -> None:
        self._http, self._token, self._app_token = http, token, app_token
        self._base_url = f"{base_url.rstrip('/')}/"
        self._host = urlsplit(base_url).hostname or ""

    async def call_api(self, method: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method that changes something."""
        return await self._request("POST", method, self._token, json=dict(given))

    async def look_up(self, method: str, given: Mapping[str, str]) -> dict[str, Any]:
        """Call a method that only reads."""
        return await self._request("GET", method, self._token, params=dict(given))

    async def get_socket_url(self) -> str:
        """Return the URL of the next socket."""
        return str((await self._request("POST", "apps.connections.open", self._app_token))["url"])

    async def _request(self, verb: str, method: str, token: str, **given: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        response = await self._http.request(
            verb, f"{self._base_url}{method}", headers=headers, **given
        )
        answer = parse_json_object(response)
        if response.status_code != 200 or not answer.get("ok"):
            raise to_channel_error(response.status_code, answer, response.headers)
        return answer

    async def upload_document(self, target: Mapping[str, str], document: UploadedDocument) -> str:
        """
        Upload a file, share it in a chat, and return its id.

        :raises NotDelivered: if the app may not upload files
        """
        file = await self._store_file(document)
        thread = {"thread_ts": target["thread_ts"]} if "thread_ts" in target else {}
        comment = {"initial_comment": document.comment} if document.comment else {}
        shared = {"files": [{"id": file, "title": document.title}], "channel_id": target["channel"]}
        await self.call_api("files.completeUploadExternal", {**shared, **thread, **comment})
        return file

    async def _store_file(self, document: UploadedDocument) -> str:
        """Upload a file that nobody sees yet."""
        asked = {"filename": document.name, "length": str(len(document.content))}
        try:
            ticket = await self.look_up("files.getUploadURLExternal", asked)
            response = await self._http.request(
                "POST",
                str(ticket["upload_url"]),
                content=document.content,
                seconds=UPLOAD_TIMEOUT,
            )
        except _MissingScope as error:
            raise NotDelivered(str(error)) from None
        except OutcomeUnknown as error:
            raise NotSent(str(error)) from None
        if response.status_code == 413:
            raise NotDelivered("Slack refused the file: it is too large")
        if response.status_code != 200:
            raise NotSent(f"Slack did not take the file: {response.status_code}")
        return str(ticket["file_id"])

    async def download_file(self, url: str, *, most: int) -> bytes:
        """Download a file from Slack; the token is sent to no other host."""
        host = urlsplit(url).hostname or ""
        if host != self._host and not host.endswith(".slack.com"):
            raise NotDelivered(f"the file is not at Slack but at {host}")
        headers = {"Authorization": f"Bearer {self._token}"}
        return await self._http.download(url, most=most, headers=headers)


def to_channel_error(
    status: int, answer: Mapping[str, Any], headers: Mapping[str, str]
) -> ChannelError:
    """Return the channel error for an unsuccessful response."""
    name = str(answer.get("error", ""))
    if status == 429 or name in ("ratelimited", "rate_limited"):
        return Throttled(
            parse_retry_after(headers.get("retry-after", ""), otherwise=_DEFAULT_RETRY_AFTER)
        )
    if status >= 500 or name in _UNKNOWN_OUTCOME_ERRORS or not name:
        return OutcomeUnknown(f"Slack answered {status} {name}".rstrip())
    if name == "missing_scope":
        return _MissingScope(
            f"the app lacks the scope {answer.get('needed', '')}: add it, and install the app again"
        )
    if says := _AUTH_ERRORS.get(name):
        return AccountRefused(says)
    return NotDelivered(
        f"Slack refused the request: {name}",
        formatting=name in _FORMATTING_ERRORS,
        gone=name in _GONE_ERRORS,
    )
