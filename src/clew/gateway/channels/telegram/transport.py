"""Calls to the Bot API, and the mapping of failures."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

# The library's own switch: durations as timedelta, without a warning for each.
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
from clew.gateway.detached_calls import DetachedCalls

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

#: Seconds to connect, to wait for a response, to send a request.
CONNECT_TIMEOUT, READ_TIMEOUT, WRITE_TIMEOUT = 10.0, 20.0, 20.0

#: Errors that occur before the first byte of a request is sent.
_NOT_SENT_ERRORS = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
)


class TelegramApi(Bot):
    """The library's bot with raw payloads: one unreadable payload must not affect the others."""

    @classmethod
    def create(cls, token: str, base_url: str, *, connections: int = 64) -> TelegramApi:
        """Create an API client for ``base_url``, to which the token is appended."""
        return cls(
            token,
            base_url=base_url,
            base_file_url=base_url.removesuffix("bot") + "file/bot",
            request=_create_request(connections),
            get_updates_request=_create_request(1),
        )

    @cached_property
    def _calls(self) -> DetachedCalls:
        return DetachedCalls()

    async def call_api(
        self, method: str, parameters: Mapping[str, Any], *, read: float = READ_TIMEOUT
    ) -> Any:
        """
        Call one method of the API.

        :raises ChannelError: telling whether the call may have had an effect
        """
        with translate_errors():
            return await self._calls.run(self._post(method, dict(parameters), read_timeout=read))

    async def download_file(self, path: str) -> bytes:
        """Return the content of a file that ``getFile`` has named."""
        with translate_errors():
            call = self.request.retrieve(f"{self.base_file_url}/{path}", read_timeout=60)
            return await self._calls.run(call)

    async def shutdown(self) -> None:
        """End the calls that still run, and close the connections."""
        await self._calls.cancel_all()
        await super().shutdown()


def _create_request(connections: int) -> HTTPXRequest:
    return HTTPXRequest(
        connection_pool_size=connections,
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        write_timeout=WRITE_TIMEOUT,
        pool_timeout=WRITE_TIMEOUT,
    )


@contextmanager
def translate_errors() -> Generator[None]:
    """
    Translate failures of the library into channel errors.

    Their texts are dropped where they may contain the token.
    """
    try:
        yield
    except TelegramError as error:
        raise to_channel_error(error) from None
    except TimeoutError:
        raise OutcomeUnknown("Telegram did not answer in time") from None


def to_channel_error(error: TelegramError) -> ChannelError:
    """Return the channel error for a failure."""
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
            return _refusal_error(error.message)
        case Forbidden():
            return NotDelivered(f"Telegram refused it: {error.message}")
        case NetworkError():
            return _network_error(error)
        case _:
            return OutcomeUnknown(f"Telegram answered without sense ({type(error).__name__})")


def _refusal_error(message: str) -> NotDelivered:
    said = message.lower()
    return NotDelivered(
        f"Telegram refused it: {message}",
        formatting="entit" in said,
        gone="message to edit not found" in said or "message can't be edited" in said,
    )


def _network_error(error: NetworkError) -> ChannelError:
    cause = error.__cause__
    if isinstance(cause, _NOT_SENT_ERRORS):
        return NotSent(f"Telegram cannot be reached ({type(cause).__name__})")
    what = type(cause).__name__ if isinstance(cause, httpx.HTTPError) else error.message
    return OutcomeUnknown(f"the connection to Telegram failed ({what})")
