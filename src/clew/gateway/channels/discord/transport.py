"""Calls to the REST API, downloads, and the mapping of failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from clew.errors import (
    AccountRefused,
    ChannelError,
    NotDelivered,
    OutcomeUnknown,
    Throttled,
)
from clew.gateway.http import read_file_content, translate_http_errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    import aiohttp

#: Seconds to wait where a refusal names no time.
_DEFAULT_RETRY_AFTER = 60.0
_USER_AGENT = "DiscordBot (https://github.com/clew/clew, 1)"

#: Discord's error code for a message that does not exist.
_UNKNOWN_MESSAGE = 10008
_FILE_HOSTS = (".discordapp.com", ".discordapp.net", ".discord.com")


class DiscordApi:
    """The REST API, as one bot."""

    def __init__(self, http: aiohttp.ClientSession, *, token: str, base_url: str) -> None:
        self._http, self._base_url = http, base_url.rstrip("/")
        self._headers = {"Authorization": f"Bot {token}", "User-Agent": _USER_AGENT}

    async def call_api(self, method: str, path: str, body: object = None) -> Any:
        """Make one call; neither waits nor retries: both are up to the rate limiter."""
        with translate_errors():
            async with self._http.request(
                method,
                f"{self._base_url}{path}",
                json=body,
                headers=self._headers,
                allow_redirects=False,
            ) as answer:
                told = await _read_body(answer)
                if answer.status >= 300:
                    raise to_channel_error(answer.status, told, answer.headers)
                return told

    async def download_file(self, url: str, *, most: int) -> bytes:
        """Download a file from Discord, without sending the token."""
        host = urlsplit(url).hostname or ""
        if host != urlsplit(self._base_url).hostname and not host.endswith(_FILE_HOSTS):
            raise NotDelivered(f"the file is not at Discord but at {host}")
        with translate_errors():
            async with self._http.get(url, allow_redirects=False) as answer:
                return await read_file_content(answer, "Discord", most=most)


async def _read_body(answer: aiohttp.ClientResponse) -> Any:
    if answer.status == 204 or answer.content_type != "application/json":
        await answer.read()
        return {}
    return await answer.json()


def translate_errors() -> AbstractContextManager[None]:
    """Translate failures of the library into channel errors."""
    return translate_http_errors("Discord", ValueError)


def to_channel_error(status: int, answer: Any, headers: Mapping[str, str]) -> ChannelError:
    """Return the error that an unsuccessful response stands for."""
    told = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    says = f"{told.get('message', '')} ({told.get('code', status)})".strip()
    if status == 429:
        return _throttled_error(told, headers)
    if status == 401:
        return AccountRefused(
            "Discord does not know the bot's token: the developer portal makes a new one"
        )
    if status >= 500 or status < 400:
        return OutcomeUnknown(f"Discord answered {status}")
    return NotDelivered(f"Discord refused it: {says}", gone=told.get("code") == _UNKNOWN_MESSAGE)


def _throttled_error(told: Mapping[str, Any], headers: Mapping[str, str]) -> Throttled:
    if "retry_after" in told:
        everywhere = bool(told.get("global")) or headers.get("X-RateLimit-Scope") == "global"
        return Throttled(float(told["retry_after"]), account=everywhere)
    # A proxy before Discord throttles the whole machine.
    said = headers.get("Retry-After", "")
    return Throttled(float(said) if said.isdigit() else _DEFAULT_RETRY_AFTER, account=True)
