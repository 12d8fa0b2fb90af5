"""Calls to the REST API, downloads, and the mapping of failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from clew.errors import (
    AccountRefused,
    ChannelError,
    NotDelivered,
    OutcomeUnknown,
    Throttled,
)
from clew.gateway.http import UPLOAD_TIMEOUT, parse_retry_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2

    from clew.gateway.http import PlatformHttp

#: Seconds to wait where a refusal names no time.
_DEFAULT_RETRY_AFTER = 60.0
_USER_AGENT = "DiscordBot (https://github.com/clew/clew, 1)"

#: Discord's error code for a message that does not exist.
_UNKNOWN_MESSAGE = 10008
_FILE_HOSTS = (".discordapp.com", ".discordapp.net", ".discord.com")


class DiscordApi:
    """The REST API, as one bot."""

    def __init__(self, http: PlatformHttp, *, token: str, base_url: str) -> None:
        self._http, self._base_url = http, base_url.rstrip("/")
        self._headers = {"Authorization": f"Bot {token}", "User-Agent": _USER_AGENT}

    async def call_api(self, method: str, path: str, body: object = None) -> Any:
        """Make one call; neither waits nor retries: both are up to the rate limiter."""
        return await self._request(method, path, json=body)

    async def upload_file(
        self,
        path: str,
        body: object,
        name: str,
        content: bytes,
        media_type: str = "text/plain; charset=utf-8",
    ) -> Any:
        """Make one call that sends a file with its body."""
        told = {"payload_json": json.dumps(body)}
        files = {"files[0]": (name, content, media_type)}
        return await self._request("POST", path, data=told, files=files, seconds=UPLOAD_TIMEOUT)

    async def _request(self, method: str, path: str, **given: Any) -> Any:
        answer = await self._http.request(
            method, f"{self._base_url}{path}", headers=self._headers, **given
        )
        told = _parse_body(answer)
        if answer.status_code >= 300:
            raise to_channel_error(answer.status_code, told, answer.headers)
        return told

    async def download_file(self, url: str, *, most: int) -> bytes:
        """Download a file from Discord, without sending the token."""
        host = urlsplit(url).hostname or ""
        if host != urlsplit(self._base_url).hostname and not host.endswith(_FILE_HOSTS):
            raise NotDelivered(f"the file is not at Discord but at {host}")
        return await self._http.download(url, most=most)


def _parse_body(answer: httpx2.Response) -> Any:
    media_type = answer.headers.get("content-type", "").partition(";")[0].strip()
    if answer.status_code == 204 or media_type != "application/json":
        return {}
    try:
        return answer.json()
    except ValueError as error:
        what = type(error).__name__
        raise OutcomeUnknown(f"the connection to Discord failed ({what})") from None


def to_channel_error(status: int, answer: Any, headers: Mapping[str, str]) -> ChannelError:
    """Return the error that an unsuccessful response stands for."""
    told = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    says = f"{told.get('message', '')} ({told.get('code', status)})".strip()
    if status == 429:
        return _throttled_error(told, headers)
    if status == 401:
        return AccountRefused(
            "Discord does not know the bot's token: create a new one in the developer portal"
        )
    if status >= 500 or status < 400:
        return OutcomeUnknown(f"Discord answered {status}")
    return NotDelivered(
        f"Discord refused the request: {says}", gone=told.get("code") == _UNKNOWN_MESSAGE
    )


def _throttled_error(told: Mapping[str, Any], headers: Mapping[str, str]) -> Throttled:
    if "retry_after" in told:
        everywhere = bool(told.get("global")) or headers.get("X-RateLimit-Scope") == "global"
        return Throttled(float(told["retry_after"]), account=everywhere)
    # A proxy before Discord throttles the whole machine.
    return Throttled(
        parse_retry_after(headers.get("Retry-After", ""), otherwise=_DEFAULT_RETRY_AFTER),
        account=True,
    )
