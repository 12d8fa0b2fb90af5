"""Calls to the Bot API, and the mapping of failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.errors import (
    AccountInUse,
    AccountRefused,
    ChannelError,
    NotDelivered,
    OutcomeUnknown,
    Throttled,
)
from clew.gateway.http import PlatformHttp, parse_json_object

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds to wait for a response.
READ_TIMEOUT = 20.0
#: The prefix of Telegram's reason for a refusal.
_REFUSED_PREFIX = "Bad Request: "


class TelegramApi:
    """The Bot API with raw payloads: one unreadable payload must not affect the others."""

    def __init__(self, token: str, base_url: str, *, connections: int = 64) -> None:
        self._url = f"{base_url}{token}"
        self._file_url = f"{base_url.removesuffix('bot')}file/bot{token}"
        self._http = PlatformHttp("Telegram", connections=connections)
        # A long poll must not wait for other calls, nor they for it.
        self._polls = PlatformHttp("Telegram", connections=1)

    async def call_api(
        self,
        method: str,
        parameters: Mapping[str, Any],
        *,
        read: float = READ_TIMEOUT,
        files: Mapping[str, tuple[str, bytes, str]] | None = None,
    ) -> Any:
        """
        Call one method of the API.

        :raises ChannelError: telling whether the call may have had an effect
        """
        http = self._polls if method == "getUpdates" else self._http
        fields = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in parameters.items()
        }
        response = await http.request(
            "POST", f"{self._url}/{method}", data=fields, files=files, seconds=read
        )
        answer = parse_json_object(response)
        if response.status_code != 200:
            raise to_channel_error(response.status_code, answer)
        if "result" not in answer:
            raise OutcomeUnknown("Telegram sent an invalid reply")
        return answer["result"]

    async def download_file(self, path: str, *, most: int) -> bytes:
        """Return the content of a file that ``getFile`` has named."""
        return await self._http.download(f"{self._file_url}/{path}", most=most)

    async def aclose(self) -> None:
        """End the calls that still run, and close the connections."""
        await self._polls.aclose()
        await self._http.aclose()


def to_channel_error(status: int, answer: Mapping[str, Any]) -> ChannelError:
    """Return the channel error for an unsuccessful response."""
    told: Mapping[str, Any] = answer.get("parameters") or {}
    reason = str(answer.get("description") or "no reason given")
    if chat := told.get("migrate_to_chat_id"):
        return NotDelivered("the id of the chat has changed", moved=str(chat))
    if seconds := told.get("retry_after"):
        return Throttled(float(seconds))
    match status:
        case 401 | 404:
            return AccountRefused("Telegram does not know the bot's token: @BotFather shows it")
        case 409:
            return AccountInUse(
                "another program reads this bot's messages: stop it, or use another bot for it"
            )
        case 400:
            return _refusal_error(reason.removeprefix(_REFUSED_PREFIX))
        case 413:
            return NotDelivered("Telegram refused the request: the file is too large")
        case 403:
            return NotDelivered(f"Telegram refused the request: {reason}")
        case _:
            return OutcomeUnknown(f"the connection to Telegram failed ({status} {reason})")


def _refusal_error(reason: str) -> NotDelivered:
    said = reason.lower()
    return NotDelivered(
        f"Telegram refused the request: {reason[:1].upper()}{reason[1:]}",
        formatting="entit" in said,
        gone="message to edit not found" in said or "message can't be edited" in said,
    )
