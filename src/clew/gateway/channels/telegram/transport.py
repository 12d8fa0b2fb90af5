"""Calls to the Bot API, and what its failures mean."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# The library's own switch: durations as timedelta, without a warning at each of them.
os.environ.setdefault("PTB_TIMEDELTA", "1")

import httpx
from telegram import Bot
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)
from telegram.request import HTTPXRequest

from clew.errors import (
    AccountInUse,
    AccountRefused,
    ChannelError,
    NotDelivered,
    NotSent,
    OutcomeUnknown,
    Throttled,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

#: Seconds to connect, to wait for an answer, to hand over a request.
CONNECT, READ, WRITE = 10.0, 20.0, 20.0

#: Failures before the first byte of a request.
_BEFORE = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class Api(Bot):
    """The library's bot, with payloads as they are: one that it cannot read is not everybody's."""

    @classmethod
    def of(cls, token: str, base_url: str) -> Api:
        """An API at ``base_url``, to which the token is appended."""
        return cls(
            token,
            base_url=base_url,
            base_file_url=base_url.removesuffix("bot") + "file/bot",
            request=_requests(64),
            get_updates_request=_requests(1),
        )

    async def call(self, method: str, parameters: Mapping[str, Any], *, read: float = READ) -> Any:
        """
        One method of the API.

        :raises ChannelError: saying whether it may have had its effect
        """
        with translated():
            return await self._post(method, dict(parameters), read_timeout=read)

    async def download(self, path: str) -> bytes:
        """The content of a file that ``getFile`` has named."""
        with translated():
            return await self.request.retrieve(f"{self.base_file_url}/{path}", read_timeout=60)


def _requests(connections: int) -> HTTPXRequest:
    return HTTPXRequest(
        connection_pool_size=connections,
        connect_timeout=CONNECT,
        read_timeout=READ,
        write_timeout=WRITE,
        pool_timeout=WRITE,
    )


@contextmanager
def translated() -> Generator[None]:
    """Failures of the library as ours; none of its texts is passed on that may hold the token."""
    try:
        yield
    except TelegramError as error:
        raise translate(error) from None


def translate(error: TelegramError) -> ChannelError:
    """What a failure means."""
    match error:
        case RetryAfter():
            wait = error.retry_after
            return Throttled(wait if isinstance(wait, int) else wait.total_seconds())
        case ChatMigrated(new_chat_id=chat):
            return NotDelivered("the chat has another id now", moved=str(chat))
        case InvalidToken():
            return AccountRefused("Telegram does not know the bot's token: @BotFather shows it")
        case Conflict():
            return AccountInUse(
                "another program reads this bot's messages: stop it, or give it a bot of its own"
            )
        case BadRequest():
            return _refused(error.message)
        case Forbidden():
            return NotDelivered(f"Telegram refused it: {error.message}")
        case NetworkError():
            return _lost(error)
        case _:
            return OutcomeUnknown(f"Telegram answered without sense ({type(error).__name__})")


def _refused(message: str) -> NotDelivered:
    said = message.lower()
    return NotDelivered(
        f"Telegram refused it: {message}",
        formatting="entit" in said,
        gone="message to edit not found" in said or "message can't be edited" in said,
    )


def _lost(error: NetworkError) -> ChannelError:
    cause = error.__cause__
    if isinstance(cause, _BEFORE):
        return NotSent(f"Telegram cannot be reached ({type(cause).__name__})")
    what = type(cause).__name__ if isinstance(cause, httpx.HTTPError) else error.message
    return OutcomeUnknown(f"the connection to Telegram failed ({what})")
