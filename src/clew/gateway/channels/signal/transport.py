"""Calls to the daemon of signal-cli, its stream of events, and the mapping of failures."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

import httpx2

from clew.background import cancel_and_wait
from clew.core.payload import as_object, as_objects, as_text
from clew.errors import (
    AccountRefused,
    ChannelError,
    NotDelivered,
    NotSent,
    OutcomeUnknown,
    Throttled,
)
from clew.gateway.http import CONNECT_TIMEOUT, UPLOAD_TIMEOUT, translate_http_errors
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from clew.gateway.http import PlatformHttp

#: Seconds of silence after which the stream is opened anew: the daemon sends a sign more often.
_MAX_SILENCE: Final = 60.0
#: Seconds to wait where a limit names none, or asks for a captcha.
_DEFAULT_WAIT, _CAPTCHA_WAIT = 60.0, 3600.0
#: Codes of JSON-RPC errors.
_UNKNOWN_METHOD, _IO_ERROR, _UNTRUSTED, _LIMITED = -32601, -3, -4, -5
_CHALLENGE: Final = (
    "Signal asks for a captcha before it takes more messages: solve one at "
    "https://signalcaptchas.org/challenge/generate.html and run signal-cli "
    "submitRateLimitChallenge with the challenge {token}"
)

Json = dict[str, Any]


class StreamedEvent(Record):
    """An event of the stream."""

    #: Its number in the daemon's memory; empty where the daemon numbers none.
    id: str
    told: Json


class SignalDaemon:
    """The JSON-RPC interface of a daemon, as one account."""

    def __init__(self, http: PlatformHttp, *, base_url: str, account: str) -> None:
        self._http, self._base_url, self._account = http, base_url.rstrip("/"), account
        #: The daemon serves several accounts: each call names ours.
        self.is_shared = False
        self._counter = 0

    @property
    def events_url(self) -> str:
        return f"{self._base_url}/api/v1/events"

    async def call(self, method: str, params: Json, *, seconds: float = UPLOAD_TIMEOUT) -> Any:
        """Make one call; neither waits nor retries: both are up to the rate limiter."""
        self._counter += 1
        given = {**params, "account": self._account} if self.is_shared else params
        asked = {"jsonrpc": "2.0", "method": method, "params": given, "id": self._counter}
        url = f"{self._base_url}/api/v1/rpc"
        answer = await self._http.request("POST", url, json=asked, seconds=seconds)
        try:
            told = as_object(answer.json())
        except ValueError:
            told = {}
        if error := as_object(told.get("error")):
            raise to_channel_error(error)
        if answer.status_code >= 300 or "result" not in told:
            raise OutcomeUnknown(f"signal-cli answered {answer.status_code} without a result")
        return told["result"]

    async def identify(self) -> None:
        """
        Find out whether the daemon serves several accounts, and ours among them.

        :raises AccountRefused: if it does not serve ours
        """
        try:
            listed = await self.call("listAccounts", {})
        except _UnknownMethod:
            return
        accounts = [as_text(one.get("number")) for one in as_objects(listed)]
        if self._account not in accounts:
            raise AccountRefused(
                f"signal-cli has no account {self._account}: register or link it first"
            )
        self.is_shared = True

    async def send(self, params: Json) -> str:
        """Send a message and return its timestamp, which is its id."""
        told = as_object(await self.call("send", params))
        check_results(as_objects(told.get("results")))
        if not (timestamp := as_text(told.get("timestamp"))):
            raise OutcomeUnknown("signal-cli answered without the timestamp of the message")
        return timestamp


class _UnknownMethod(NotDelivered):
    """Method that the daemon does not have in its mode."""


def to_channel_error(error: Json) -> ChannelError:
    """Return the error that a JSON-RPC error stands for."""
    code, says = error.get("code"), as_text(error.get("message"))[:300]
    results = as_objects(as_object(as_object(error.get("data")).get("response")).get("results"))
    if code == _UNKNOWN_METHOD:
        return _UnknownMethod(f"signal-cli does not know the method: {says}")
    if found := find_failure(results):
        return found
    if code == _LIMITED:
        return Throttled(_DEFAULT_WAIT, account=True)
    if code == _UNTRUSTED:
        return _UNTRUSTED_ERROR
    if code == _IO_ERROR or code == -32603:
        return OutcomeUnknown(f"signal-cli failed: {says}")
    return NotDelivered(f"signal-cli refused the message: {says}")


_UNTRUSTED_ERROR = NotDelivered(
    "the person's safety number has changed: check it, then run signal-cli trust for the person"
)


def find_failure(results: Sequence[Json]) -> ChannelError | None:
    """Return why a message reached nobody; ``None`` if it reached one person at least."""
    kinds = [as_text(one.get("type")) for one in results]
    if not results or "SUCCESS" in kinds:
        return None
    first, kind = results[0], kinds[0]
    if kind == "RATE_LIMIT_FAILURE":
        return _to_limit(first)
    if kind == "IDENTITY_FAILURE":
        return NotDelivered(str(_UNTRUSTED_ERROR))
    if kind == "UNREGISTERED_FAILURE":
        return NotDelivered("the person is not registered with Signal any more")
    if kind == "NETWORK_FAILURE":
        return OutcomeUnknown("signal-cli could not reach Signal")
    return NotDelivered(f"Signal did not take the message: {kind}")


def _to_limit(result: Json) -> ChannelError:
    seconds = result.get("retryAfterSeconds")
    wait = float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else None
    if token := as_text(result.get("token")):
        return CaptchaAsked(token, wait or _CAPTCHA_WAIT)
    return Throttled(wait or _DEFAULT_WAIT, account=True)


class CaptchaAsked(Throttled):
    """Limit that ends once a person has solved a captcha."""

    def __init__(self, token: str, seconds: float) -> None:
        super().__init__(seconds, account=True)
        self.args = (_CHALLENGE.format(token=token),)


def check_results(results: Sequence[Json]) -> None:
    """
    Check that a message reached somebody.

    :raises ChannelError: if it reached nobody
    """
    if (error := find_failure(results)) is not None:
        raise error


class EventStream:
    """One connection to the daemon's stream of events."""

    def __init__(self, url: str, *, after: str) -> None:
        self._url, self._after = url, after
        self._events: asyncio.Queue[StreamedEvent | None] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        limits = httpx2.Timeout(_MAX_SILENCE, connect=CONNECT_TIMEOUT)
        self._client = httpx2.AsyncClient(timeout=limits)
        # An id that the daemon does not know brings all that it remembers.
        headers = {"Accept": "text/event-stream", "Last-Event-ID": self._after or "0"}
        asked = self._client.build_request("GET", self._url, headers=headers)
        try:
            with translate_http_errors("signal-cli"):
                self._answer = await self._client.send(asked, stream=True)
            if self._answer.status_code != 200:
                raise NotSent(f"signal-cli answered {self._answer.status_code} to /api/v1/events")
        except BaseException:
            await self._client.aclose()
            raise
        self._reader = asyncio.create_task(self._read_events(), name="signal:events")
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await cancel_and_wait(self._reader)
        await self._answer.aclose()
        await self._client.aclose()

    async def _read_events(self) -> None:
        try:
            with suppress(httpx2.HTTPError, OSError):
                await self._parse_lines()
        finally:
            self._events.put_nowait(None)

    async def _parse_lines(self) -> None:
        id_, data = "", list[str]()
        async for line in self._answer.aiter_lines():
            field, _, value = line.partition(":")
            if field == "id":
                id_ = value.strip()
            elif field == "data":
                data.append(value.removeprefix(" "))
            elif not line and data:
                self._add_event(id_, "\n".join(data))
                data = []

    def _add_event(self, id_: str, data: str) -> None:
        with suppress(ValueError):
            self._events.put_nowait(StreamedEvent(id=id_, told=as_object(json.loads(data))))

    async def read(self, *, seconds: float) -> Sequence[StreamedEvent]:
        """
        Return the events that have arrived, or arrive within ``seconds``.

        :raises NotSent: if the connection is lost
        """
        found: list[StreamedEvent | None] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                found.append(await self._events.get())
        while not self._events.empty():
            found.append(self._events.get_nowait())
        if None in found:
            self._events.put_nowait(None)
            if found[0] is None:
                raise NotSent("signal-cli closed the stream of events")
        return [one for one in found if one is not None]
