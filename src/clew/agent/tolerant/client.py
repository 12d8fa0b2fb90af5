"""The HTTP client under the client libraries: what it hands them was read tolerantly."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import httpx2
import structlog

from clew.agent.tolerant.decoding import (
    CutReplyError,
    StreamDecoder,
    decode_whole,
    encode_json,
    format_of,
)
from clew.agent.tolerant.errors import ReplyError
from clew.agent.tolerant.notes import log_once
from clew.agent.tolerant.reply import Habits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clew.agent.tolerant.decoding import Format

__all__ = ["TolerantClient"]

log = structlog.get_logger(__name__)

#: Options of a request that some servers refuse, and what is sent in their place.
_OPTIONAL: Final[dict[str, str | None]] = {
    "stream_options": None,
    "max_completion_tokens": "max_tokens",
}
_REFUSALS: Final = (400, 422)
_FRAMING: Final = frozenset({"content-length", "content-encoding", "transfer-encoding"})


class TolerantClient(httpx2.AsyncClient):
    """
    A client whose replies in OpenAI's and Anthropic's formats are proper ones.

    It belongs to one server: what that one was found to refuse is not sent to it again.
    """

    #: Seconds that are waited for the rest of a reply once it said why it ended.
    patience = 5.0

    def __init__(self, **options: Any) -> None:
        # As the libraries' own client has them.
        options.setdefault("limits", httpx2.Limits(max_connections=1000))
        super().__init__(follow_redirects=True, **options)
        self._habits = Habits()
        self._refused: set[str] = set()

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        form = format_of(request.url.path) if request.method == "POST" else None
        if form is None:
            return await super().send(request, stream=stream, **options)
        request = _without(request, self._refused)
        response = await super().send(request, stream=True, **options)
        if response.status_code in _REFUSALS and (refused := await _refused(request, response)):
            self._refused.add(refused)
            log.info("provider_refuses_option", option=refused, host=request.url.host)
            request = _without(request, self._refused)
            response = await super().send(request, stream=True, **options)
        if response.is_success:
            read = self._streamed if _wants_stream(request) else self._whole
            response = await read(response, form)
        if not stream:
            await response.aread()
        return response

    async def _whole(self, response: httpx2.Response, form: Format) -> httpx2.Response:
        body = await response.aread()
        try:
            reply = decode_whole(body, form, log_once, self._habits)
        except ReplyError as error:
            return _error(response, error, form)
        except CutReplyError as error:
            raise httpx2.RemoteProtocolError(str(error), request=response.request) from error
        if reply is None:
            return response
        return _response(response, "application/json", content=encode_json(reply))

    async def _streamed(self, response: httpx2.Response, form: Format) -> httpx2.Response:
        body = _Body(response, StreamDecoder(form, log_once, self._habits), self.patience)
        try:
            # A reply that is nothing but an error gets the status of one.
            await body.begin()
        except ReplyError as error:
            await response.aclose()
            return _error(response, error, form)
        except BaseException:
            await response.aclose()
            raise
        return _response(response, "text/event-stream; charset=utf-8", stream=body)


class _Body(httpx2.AsyncByteStream):
    """The body of a streamed reply, as it was read."""

    def __init__(self, response: httpx2.Response, decoder: StreamDecoder, patience: float) -> None:
        self._response, self._decoder, self._patience = response, decoder, patience
        packed = "content-encoding" in response.headers
        self._pieces = response.aiter_bytes() if packed else response.aiter_raw()
        self._first = b""

    async def begin(self) -> None:
        """
        Read up to the first event.

        :raises ReplyError: if that tells an error
        """
        while not self._first and not self._decoder.ended:
            self._first = await self._next()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._first
        try:
            while not self._decoder.ended:
                yield await self._next()
        except ReplyError as error:
            log.warning("provider_reported_error", error=error.message, status=error.status)
            yield self._decoder.error(error)

    async def _next(self) -> bytes:
        """The events of the next piece; those of the end where there is none."""
        if self._decoder.finished:
            piece = await self._rest()
        else:
            piece = await anext(self._pieces, None)
        if piece is not None:
            return b"".join(self._decoder.feed(piece))
        events = self._decoder.end()
        self._decoder.ended = True
        return b"".join(events)

    async def _rest(self) -> bytes | None:
        """What follows where nothing of the reply can be missing any more."""
        try:
            async with asyncio.timeout(self._patience):
                return await anext(self._pieces, None)
        except (httpx2.TransportError, TimeoutError):
            return None

    async def aclose(self) -> None:
        await self._pieces.aclose()
        await self._response.aclose()


def _response(response: httpx2.Response, kind: str, **body: Any) -> httpx2.Response:
    """The same response with another body."""
    headers = [(k, v) for k, v in response.headers.multi_items() if k.lower() not in _FRAMING]
    kept = [(k, v) for k, v in headers if k.lower() != "content-type"]
    return httpx2.Response(
        response.status_code,
        headers=[*kept, ("content-type", kind)],
        request=response.request,
        extensions=response.extensions,
        **body,
    )


def _error(response: httpx2.Response, error: ReplyError, form: Format) -> httpx2.Response:
    log.warning("provider_reported_error", error=error.message, status=error.status)
    answer = _response(
        response, "application/json", content=encode_json(error.body(messages=form == "messages"))
    )
    answer.status_code = error.status
    return answer


def _wants_stream(request: httpx2.Request) -> bool:
    body = request.content
    if b'"stream":true' not in body and b'"stream": true' not in body:
        return False
    if body.count(b'"stream"') == 1:
        return True
    return json.loads(body).get("stream") is True


async def _refused(request: httpx2.Request, response: httpx2.Response) -> str | None:
    """The option that a server refuses by its name, if the request has it."""
    said = await response.aread()
    options = (name for name in _OPTIONAL if name.encode() in said)
    return next((name for name in options if f'"{name}":'.encode() in request.content), None)


def _without(request: httpx2.Request, refused: set[str]) -> httpx2.Request:
    """The request without the options that the server refuses."""
    if not refused:
        return request
    body = json.loads(request.content)
    for name in refused & body.keys():
        value, instead = body.pop(name), _OPTIONAL[name]
        if instead is not None:
            body.setdefault(instead, value)
    headers = {k: v for k, v in request.headers.items() if k.lower() not in _FRAMING}
    return httpx2.Request(
        request.method,
        request.url,
        headers=headers,
        content=encode_json(body),
        extensions=request.extensions,
    )
