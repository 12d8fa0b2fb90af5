"""Handling of model requests: capture, validate, and reply as scripted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from clew.testing.provider.capture import (
    CapturedRequest,
    RequestOutcome,
    append_log,
    parse_object,
    remove_secrets,
)
from clew.testing.provider.error_responses import rejection_response
from clew.testing.provider.http import HttpRequest, ResponseWriter, WatchedReader
from clew.testing.provider.player import ReplyPlayer
from clew.testing.provider.request import ProviderRequest, Script, WireFormat
from clew.testing.provider.request_parsing import parse_messages, tool_names
from clew.testing.provider.validation import find_violation

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

#: The number of captured requests kept; the oldest are dropped first.
MAX_CAPTURED = 10_000

logger = logging.getLogger(__name__)


class RequestHandler:
    """Handler of all requests of one server; runs in its event loop."""

    def __init__(self, script: Script, *, log: Path | None, strict: bool, templates: bool) -> None:
        self.script = script
        self.captured: deque[CapturedRequest] = deque(maxlen=MAX_CAPTURED)
        self.script_error: Exception | None = None
        self._log = log
        self._strict, self._templates = strict, templates
        self._request_count = 0
        self._conversations = Counter[str]()

    async def handle_request(
        self,
        http: HttpRequest,
        format_: WireFormat,
        reader: WatchedReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Answer one request and record its outcome."""
        captured = self._capture_request(http, format_)
        out = ResponseWriter(writer, f"req_{captured.number:06}")
        outcome: RequestOutcome = "server_closed"
        try:
            outcome = await _run_while_connected(reader, self._select_reply(captured, format_, out))
        finally:
            captured.status = out.status
            captured.ended, captured.ended_wall = time.monotonic(), time.time()
            captured.outcome = outcome
            if self._log is not None:
                append_log(self._log, captured)

    def _capture_request(self, http: HttpRequest, format_: WireFormat) -> CapturedRequest:
        self._request_count += 1
        body = parse_object(http.body)
        captured = CapturedRequest(
            number=self._request_count,
            format=format_,
            path=http.path,
            headers=remove_secrets(http.headers),
            body=http.body,
            json=body,
            stream=bool(body and body.get("stream")),
            started=time.monotonic(),
        )
        self.captured.append(captured)
        return captured

    async def _select_reply(
        self, captured: CapturedRequest, format_: WireFormat, out: ResponseWriter
    ) -> RequestOutcome:
        if captured.json is None:
            message: str | None = "We could not parse the JSON body of your request."
            return await _reject_request(out, format_, message, captured.number)
        request = self._parse_request(captured.number, format_, captured.json)
        if (
            self._strict
            and (message := find_violation(request, templates=self._templates)) is not None
        ):
            return await _reject_request(out, format_, message, captured.number)
        try:
            reply = self.script(request)
        except Exception as error:
            # A script is test code: its error is raised at the end of the test.
            logger.exception("the script failed")
            self.script_error = error
            await out.send_json(500, {"error": {"message": f"the script failed: {error!r}"}})
            return "script_failed"
        return await ReplyPlayer(request, out, captured).send_reply(reply)

    def _parse_request(
        self, number: int, format_: WireFormat, body: dict[str, Any]
    ) -> ProviderRequest:
        messages = parse_messages(format_, body)
        texts = (text for m in messages if m.role == "user" for text in m.texts)
        first = next(texts, "")
        self._conversations[first] += 1
        return ProviderRequest(
            number=number,
            format=format_,
            model=str(body.get("model", "")),
            messages=messages,
            tools=tool_names(body),
            stream=bool(body.get("stream")),
            earlier_requests=self._conversations[first] - 1,
            raw=body,
        )


async def _reject_request(
    out: ResponseWriter, format_: WireFormat, message: str, number: int
) -> RequestOutcome:
    await out.send_json(*rejection_response(format_, message, number))
    return "refused"


async def _run_while_connected(
    reader: WatchedReader, work: Coroutine[None, None, RequestOutcome]
) -> RequestOutcome:
    """Run the work, but cancel it when the client disconnects."""
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(_catch_disconnect(work))
        watching = tasks.create_task(reader.disconnected.wait())
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        working.cancel()
    return "client_gone" if working.cancelled() else working.result()


async def _catch_disconnect(work: Coroutine[None, None, RequestOutcome]) -> RequestOutcome:
    try:
        return await work
    except OSError:
        return "client_gone"
