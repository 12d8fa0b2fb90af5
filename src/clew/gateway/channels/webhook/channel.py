"""The channel: what is handed in is answered once it is stored; what is handed over has an id."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Self

import httpx2

from clew.config.secret import Secret
from clew.engine.doors import WEBHOOK_NOT_READY, WebhookRequest, WebhookResponse
from clew.errors import (
    ChannelError,
    NotDelivered,
    NotSent,
    OutcomeUnknown,
    SettingsError,
    Throttled,
)
from clew.gateway.channel import Capabilities, Channel, ChannelConfig
from clew.gateway.channels.webhook import codec
from clew.gateway.channels.webhook.signing import Refused, key_of, sign, verified

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from types import TracebackType

    from clew.core.chat import ButtonPressed, ChannelEvent, OutboundMessage
    from clew.core.route import Route


#: Seconds for which whoever hands something in waits until it is stored.
PATIENCE = 20.0
#: Seconds between two signs of life, and for a request.
BEAT, TIMEOUT = 30.0, 20.0
#: The shortest message that the settings may ask for.
_SHORTEST = 100
#: Seconds to wait where the other side does not say.
_WAIT = 5.0

ACCEPTED = WebhookResponse(status=202)
#: The keys of its table that only this channel knows.
OPTIONS = frozenset({"secret", "old_secret", "longest"})


def open_channel(config: ChannelConfig) -> Channel:
    """
    What the entry point names.

    :raises SettingsError: if a setting is missing or cannot be used
    """
    table = f"channels.{config.name}"
    if config.base_url is None:
        raise SettingsError(f"{table}.base_url is missing: answers are posted to it")
    if unknown := sorted(config.options.keys() - OPTIONS):
        raise SettingsError(
            f"{table} has no setting {unknown[0]}; its own are {', '.join(sorted(OPTIONS))}"
        )
    keys = [_key(config, name) for name in ("secret", "old_secret") if name in config.options]
    if "secret" not in config.options:
        raise SettingsError(f"{table}.secret is missing: requests are signed with it, both ways")
    return WebhookChannel(config, config.base_url, keys, longest=_longest(config))


def _key(config: ChannelConfig, name: str) -> bytes:
    secret = config.options[name]
    try:
        key = key_of(secret.reveal() if isinstance(secret, Secret) else str(secret))
    except ValueError as error:
        raise SettingsError(f"channels.{config.name}.{name} cannot be used: {error}") from None
    if len(key) < 16:
        raise SettingsError(
            f"channels.{config.name}.{name} is too short to be a secret: it needs 16 bytes, which "
            "openssl rand -hex 16 makes"
        )
    return key


def _longest(config: ChannelConfig) -> int:
    said = str(config.options.get("longest", codec.LONGEST))
    if not (said.isascii() and said.isdigit() and int(said) >= _SHORTEST):
        raise SettingsError(
            f"channels.{config.name}.longest must be a number of characters of at least "
            f"{_SHORTEST}, not {said!r}"
        )
    return int(said)


class _Handed:
    """An event, and who waits until it is stored."""

    def __init__(self, event: ChannelEvent) -> None:
        self.event = event
        self.stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class WebhookChannel(Channel):
    """One program that hands in what people say, and takes what the agent answers."""

    platform = codec.PLATFORM

    def __init__(
        self, config: ChannelConfig, url: str, keys: Sequence[bytes], *, longest: int
    ) -> None:
        # The path that it is reached under is what two of them would share.
        self.account = config.name
        self.capabilities = Capabilities(
            longest=longest, markup="Markdown", threads=True, buttons=True, idempotent=True
        )
        self._config, self._url, self._keys, self._longest = config, url, keys, longest
        self._waiting: asyncio.Queue[_Handed] = asyncio.Queue()
        #: Told, and not stored yet as far as is known.
        self._told: list[_Handed] = []
        self._http: httpx2.AsyncClient | None = None
        config.doors.declare_webhook(config.name)

    async def __aenter__(self) -> Self:
        self._http = httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=False)
        self._config.doors.register_handler(self._config.name, self._handed_in)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._config.doors.unregister_handler(self._config.name)
        self._told += _taken(self._waiting)
        for handed in self._told:
            handed.stored.cancel()
        if self._http is not None:
            await self._http.aclose()

    # In

    async def _handed_in(self, knock: WebhookRequest) -> WebhookResponse:
        try:
            signed = verified(self._keys, knock.headers, knock.body, now=time.time())
            event = codec.parse(knock.body, signed, label=self._config.label)
        except Refused as error:
            return WebhookResponse(status=error.status, code=error.code, message=error.message)
        handed = _Handed(event)
        self._waiting.put_nowait(handed)
        # Not stored in time: it may still be, and is known again when it comes once more.
        await asyncio.wait({handed.stored}, timeout=PATIENCE)
        stored = handed.stored.done() and not handed.stored.cancelled()
        return ACCEPTED if stored else WEBHOOK_NOT_READY

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT):
                    self._told.append(await self._waiting.get())
            self._told += _taken(self._waiting)
            yield [handed.event for handed in self._told]
            # Asked for more: these are stored.
            for handed in self._told:
                if not handed.stored.done():
                    handed.stored.set_result(None)
            self._told.clear()

    # Out

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return codec.render(message, longest=self._longest)

    def repeated(self, chunk: str) -> str:
        return codec.repeated(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        answer = await self._post(codec.payload(route, chunk), key=key)
        return _message(answer) or key

    async def answer(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        body = codec.answered(pressed, text, closed=closed, became=became)
        await self._post(body, key=f"answer:{pressed.event}")

    async def _post(self, body: bytes, *, key: str) -> httpx2.Response:
        assert self._http is not None
        # A dot would end the id in what is signed.
        headers = sign(self._keys[0], id_=key.replace(".", "_"), at=int(time.time()), body=body)
        more = {"content-type": "application/json", "idempotency-key": key}
        try:
            answer = await self._http.post(self._url, content=body, headers={**headers, **more})
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise NotSent(f"the webhook cannot be reached ({type(error).__name__})") from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
            raise NotDelivered("base_url is no address that can be posted to") from None
        except httpx2.HTTPError as error:
            what = type(error).__name__
            raise OutcomeUnknown(f"the connection to the webhook failed ({what})") from None
        if error := _failure(answer.status_code, answer.headers):
            raise error
        return answer


def _taken(waiting: asyncio.Queue[_Handed]) -> list[_Handed]:
    return [waiting.get_nowait() for _ in range(waiting.qsize())]


def _message(answer: httpx2.Response) -> str | None:
    """The id that the other side gave it."""
    try:
        told: Any = answer.json()
        found: object = told["id"]
    except (ValueError, TypeError, LookupError):
        return None
    return str(found) if isinstance(found, (str, int)) and str(found) else None


def _failure(status: int, headers: Mapping[str, str]) -> ChannelError | None:
    """What a status means."""
    if status < 300:
        return None
    if status == 429 or (status == 503 and "retry-after" in headers):
        return Throttled(_seconds(headers.get("retry-after", "")))
    if status >= 500 or status in (408, 425):
        return OutcomeUnknown(f"the webhook answered {status}")
    if status < 400:
        return NotDelivered(f"the webhook answered {status}: redirections are not followed")
    return NotDelivered(f"the webhook refused it: {status}")


def _seconds(said: str) -> float:
    """The wait in ``Retry-After``: seconds, or a date."""
    if said.isascii() and said.isdigit():
        return float(said)
    try:
        until = parsedate_to_datetime(said)
    except ValueError:
        return _WAIT
    left = until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)
    return max(1.0, left.total_seconds())
