"""What becomes of a request for an answer: it is captured, checked, and answered by the script."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from clew.testing.provider.capture import (
    Captured,
    Outcome,
    append_log,
    parse_json,
    without_secrets,
)
from clew.testing.provider.failures import refusal
from clew.testing.provider.http import HttpRequest, Outbound, Watched
from clew.testing.provider.parsing import parse_messages, tool_names
from clew.testing.provider.playing import Player
from clew.testing.provider.request import Format, Request, Script
from clew.testing.provider.validation import complaint

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

#: How many captured requests are kept; the oldest go first.
KEPT = 10_000

logger = logging.getLogger(__name__)


class Intake:
    """All requests of one server; lives in its event loop."""

    def __init__(self, script: Script, *, log: Path | None, strict: bool, templates: bool) -> None:
        self.script = script
        self.captured: deque[Captured] = deque(maxlen=KEPT)
        self.script_error: Exception | None = None
        self._log = log
        self._strict, self._templates = strict, templates
        self._count = 0
        self._conversations = Counter[str]()

    async def answer(
        self, http: HttpRequest, format_: Format, reader: Watched, writer: asyncio.StreamWriter
    ) -> None:
        """Answer one request and record how that ended."""
        captured = self._capture(http, format_)
        out = Outbound(writer, f"req_{captured.number:06}")
        outcome: Outcome = "server_closed"
        try:
            outcome = await _unless_gone(reader, self._decide(captured, format_, out))
        finally:
            captured.status = out.status
            captured.ended, captured.ended_wall = time.monotonic(), time.time()
            captured.outcome = outcome
            if self._log is not None:
                append_log(self._log, captured)

    def _capture(self, http: HttpRequest, format_: Format) -> Captured:
        self._count += 1
        body = parse_json(http.body)
        captured = Captured(
            number=self._count,
            format=format_,
            path=http.path,
            headers=without_secrets(http.headers),
            body=http.body,
            json=body,
            stream=bool(body and body.get("stream")),
            started=time.monotonic(),
            started_wall=time.time(),
        )
        self.captured.append(captured)
        return captured

    async def _decide(self, captured: Captured, format_: Format, out: Outbound) -> Outcome:
        if captured.json is None:
            message: str | None = "We could not parse the JSON body of your request."
            return await _refuse(out, format_, message, captured.number)
        request = self._request(captured.number, format_, captured.json)
        if self._strict and (message := complaint(request, templates=self._templates)) is not None:
            return await _refuse(out, format_, message, captured.number)
        try:
            reply = self.script(request)
        except Exception as error:
            # A script is the test's own code: its mistake is told at the end of the test.
            logger.exception("the script failed")
            self.script_error = error
            await out.send_json(500, {"error": {"message": f"the script failed: {error!r}"}})
            return "script_failed"
        return await Player(request, out, captured).play(reply)

    def _request(self, number: int, format_: Format, body: dict[str, Any]) -> Request:
        messages = parse_messages(format_, body)
        texts = (text for m in messages if m.role == "user" for text in m.texts)
        first = next(texts, "")
        self._conversations[first] += 1
        return Request(
            number=number,
            format=format_,
            model=str(body.get("model", "")),
            messages=messages,
            tools=tool_names(body),
            stream=bool(body.get("stream")),
            earlier=self._conversations[first] - 1,
            raw=body,
        )


async def _refuse(out: Outbound, format_: Format, message: str, number: int) -> Outcome:
    await out.send_json(*refusal(format_, message, number))
    return "refused"


async def _unless_gone(reader: Watched, work: Coroutine[None, None, Outcome]) -> Outcome:
    """Do the work, but stop it when the client goes away."""
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(_while_connected(work))
        watching = tasks.create_task(reader.gone.wait())
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        working.cancel()
    return "client_gone" if working.cancelled() else working.result()


async def _while_connected(work: Coroutine[None, None, Outcome]) -> Outcome:
    try:
        return await work
    except OSError:
        return "client_gone"
