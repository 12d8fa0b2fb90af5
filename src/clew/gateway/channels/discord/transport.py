"""Calls to the REST API, files, and what failures mean."""

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
from clew.gateway.calls import connected, content

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    import aiohttp

#: Seconds to wait where whoever refuses does not say.
_WAIT = 60.0
_AGENT = "DiscordBot (https://github.com/clew/clew, 1)"

#: Discord's numbers for a message that is not there.
_UNKNOWN_MESSAGE = 10008
_FILES = (".discordapp.com", ".discordapp.net", ".discord.com")


class Api:
    """The REST API, as one bot."""

    def __init__(self, http: aiohttp.ClientSession, *, token: str, base_url: str) -> None:
        self._http, self._base_url = http, base_url.rstrip("/")
        self._headers = {"Authorization": f"Bot {token}", "User-Agent": _AGENT}

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """One call; never waits, never tries again: both are the gate's affair."""
        with translated():
            async with self._http.request(
                method,
                f"{self._base_url}{path}",
                json=body,
                headers=self._headers,
                allow_redirects=False,
            ) as answer:
                told = await _told(answer)
                if answer.status >= 300:
                    raise translate(answer.status, told, answer.headers)
                return told

    async def download(self, url: str, *, most: int) -> bytes:
        """A file of Discord's; the token is not sent along."""
        host = urlsplit(url).hostname or ""
        if host != urlsplit(self._base_url).hostname and not host.endswith(_FILES):
            raise NotDelivered(f"the file is not at Discord but at {host}")
        with translated():
            async with self._http.get(url, allow_redirects=False) as answer:
                return await content(answer, "Discord", most=most)


async def _told(answer: aiohttp.ClientResponse) -> Any:
    if answer.status == 204 or answer.content_type != "application/json":
        await answer.read()
        return {}
    return await answer.json()


def translated() -> AbstractContextManager[None]:
    """Failures of the library as ours."""
    return connected("Discord", ValueError)


def translate(status: int, answer: Any, headers: Mapping[str, str]) -> ChannelError:
    """What an answer means that is no success."""
    told = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    says = f"{told.get('message', '')} ({told.get('code', status)})".strip()
    if status == 429:
        return _throttled(told, headers)
    if status == 401:
        return AccountRefused(
            "Discord does not know the bot's token: the developer portal makes a new one"
        )
    if status >= 500 or status < 400:
        return OutcomeUnknown(f"Discord answered {status}")
    return NotDelivered(f"Discord refused it: {says}", gone=told.get("code") == _UNKNOWN_MESSAGE)


def _throttled(told: Mapping[str, Any], headers: Mapping[str, str]) -> Throttled:
    if "retry_after" in told:
        everywhere = bool(told.get("global")) or headers.get("X-RateLimit-Scope") == "global"
        return Throttled(float(told["retry_after"]), account=everywhere)
    # What stands before Discord refuses the whole machine.
    said = headers.get("Retry-After", "")
    return Throttled(float(said) if said.isdigit() else _WAIT, account=True)
