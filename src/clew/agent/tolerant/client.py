"""HTTP client that gives the client libraries normalised replies."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import httpx2
import structlog

from clew.agent.tolerant.decoding import (
    IncompleteReplyError,
    StreamDecoder,
    decode_whole_reply,
    encode_json,
    find_reply_format,
)
from clew.agent.tolerant.errors import ReplyError
from clew.agent.tolerant.reader import ServerQuirks
from clew.agent.tolerant.unknowns import log_unknown_once

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clew.agent.tolerant.decoding import ReplyFormat

__all__ = ["TolerantClient"]

log = structlog.get_logger(__name__)

#: Options of a request that some servers refuse, and their replacements.
_OPTION_REPLACEMENTS: Final[dict[str, str | None]] = {
    "stream_options": None,
    "max_completion_tokens": "max_tokens",
}
_REFUSAL_STATUSES: Final = (400, 422)
_FRAMING_HEADERS: Final = frozenset({"content-length", "content-encoding", "transfer-encoding"})


class TolerantClient(httpx2.AsyncClient):
    """
    Client that normalises replies in OpenAI's and Anthropic's formats.

    It belongs to one server: options that the server refused are not sent to it again.
    """

    #: Seconds to wait for the rest of a reply after its finish reason.
    tail_timeout = 5.0

    def __init__(self, **options: Any) -> None:
        # As in the libraries' own client.
        options.setdefault("limits", httpx2.Limits(max_connections=1000))
        super().__init__(follow_redirects=True, **options)
        self._quirks = ServerQuirks()
        self._refused_options: set[str] = set()

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        form = find_reply_format(request.url.path) if request.method == "POST" else None
        if form is None:
            return await super().send(request, stream=stream, **options)
        request = _strip_options(request, self._refused_options)
        response = await super().send(request, stream=True, **options)
        if response.status_code in _REFUSAL_STATUSES and (
            refused := await _find_refused_option(request, response)
        ):
            self._refused_options.add(refused)
            log.info("provider_refuses_option", option=refused, host=request.url.host)
            request = _strip_options(request, self._refused_options)
            response = await super().send(request, stream=True, **options)
        if response.is_success:
            read = self._read_stream if _wants_stream(request) else self._read_whole
            response = await read(response, form)
        if not stream:
            await response.aread()
        return response

    async def _read_whole(self, response: httpx2.Response, form: ReplyFormat) -> httpx2.Response:
        body = await response.aread()
        try:
            reply = decode_whole_reply(body, form, log_unknown_once, self._quirks)
        except ReplyError as error:
            return _make_error_response(response, error, form)
        except IncompleteReplyError as error:
            raise httpx2.RemoteProtocolError(str(error), request=response.request) from error
        if reply is None:
            return response
        return _make_response(response, "application/json", content=encode_json(reply))

    async def _read_stream(self, response: httpx2.Response, form: ReplyFormat) -> httpx2.Response:
        body = _DecodedBody(
            response, StreamDecoder(form, log_unknown_once, self._quirks), self.tail_timeout
        )
        try:
            # A reply that is only an error gets an error status.
            await body.read_first_event()
        except ReplyError as error:
            await response.aclose()
            return _make_error_response(response, error, form)
        except BaseException:
            await response.aclose()
            raise
        return _make_response(response, "text/event-stream; charset=utf-8", stream=body)


class _DecodedBody(httpx2.AsyncByteStream):
    """Body of a streamed reply, normalised."""

    def __init__(self, response: httpx2.Response, decoder: StreamDecoder, patience: float) -> None:
        self._response, self._decoder, self._patience = response, decoder, patience
        packed = "content-encoding" in response.headers
        self._pieces = response.aiter_bytes() if packed else response.aiter_raw()
        self._first = b""

    async def read_first_event(self) -> None:
        """
        Read up to the first event.

        :raises ReplyError: if that contains an error
        """
        while not self._first and not self._decoder.has_ended:
            self._first = await self._read_next()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._first
        try:
            while not self._decoder.has_ended:
                yield await self._read_next()
        except ReplyError as error:
            log.warning("provider_reported_error", error=error.message, status=error.status)
            yield self._decoder.encode_error(error)

    async def _read_next(self) -> bytes:
        """Return the events of the next piece; at the end of the body, the closing events."""
        if self._decoder.is_finished:
            piece = await self._read_tail()
        else:
            piece = await anext(self._pieces, None)
        if piece is not None:
            return b"".join(self._decoder.feed_piece(piece))
        events = self._decoder.flush_rest()
        self._decoder.has_ended = True
        return b"".join(events)

    async def _read_tail(self) -> bytes | None:
        """Return the next piece after the finish reason, when nothing can be missing any more."""
        try:
            async with asyncio.timeout(self._patience):
                return await anext(self._pieces, None)
        except (httpx2.TransportError, TimeoutError):
            return None

    async def aclose(self) -> None:
        await self._pieces.aclose()
        await self._response.aclose()


def _make_response(response: httpx2.Response, kind: str, **body: Any) -> httpx2.Response:
    """Return the response with another body."""
    headers = [
        (k, v) for k, v in response.headers.multi_items() if k.lower() not in _FRAMING_HEADERS
    ]
    kept = [(k, v) for k, v in headers if k.lower() != "content-type"]
    return httpx2.Response(
        response.status_code,
        headers=[*kept, ("content-type", kind)],
        request=response.request,
        extensions=response.extensions,
        **body,
    )


def _make_error_response(
    response: httpx2.Response, error: ReplyError, form: ReplyFormat
) -> httpx2.Response:
    log.warning("provider_reported_error", error=error.message, status=error.status)
    answer = _make_response(
        response,
        "application/json",
        content=encode_json(error.make_body(messages=form == "messages")),
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


async def _find_refused_option(request: httpx2.Request, response: httpx2.Response) -> str | None:
    """Return the option that a server refuses by name, if the request has it."""
    said = await response.aread()
    options = (name for name in _OPTION_REPLACEMENTS if name.encode() in said)
    return next((name for name in options if f'"{name}":'.encode() in request.content), None)


def _strip_options(request: httpx2.Request, refused: set[str]) -> httpx2.Request:
    """Return the request without the options that the server refuses."""
    if not refused:
        return request
    body = json.loads(request.content)
    for name in refused & body.keys():
        value, instead = body.pop(name), _OPTION_REPLACEMENTS[name]
        if instead is not None:
            body.setdefault(instead, value)
    headers = {k: v for k, v in request.headers.items() if k.lower() not in _FRAMING_HEADERS}
    return httpx2.Request(
        request.method,
        request.url,
        headers=headers,
        content=encode_json(body),
        extensions=request.extensions,
    )
