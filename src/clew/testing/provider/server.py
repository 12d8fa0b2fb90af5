"""The fake provider: a real HTTP server with a thread and an event loop of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Self

from clew.testing.provider.answers import CREATED
from clew.testing.provider.capture import (
    Captured,
    Log,
    Outcome,
    as_json,
    parse_json,
    without_secrets,
)
from clew.testing.provider.failures import refusal
from clew.testing.provider.http import HttpRequest, Outbound, Watched, read_request
from clew.testing.provider.parsing import parse_messages, tool_names
from clew.testing.provider.playing import Player
from clew.testing.provider.request import Format, Request, Script
from clew.testing.provider.scripts import echo

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path
    from types import TracebackType

ROUTES: dict[str, Format] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}
#: How many captured requests are kept; the oldest go first.
KEPT = 10_000

log = logging.getLogger(__name__)


class FakeProvider:
    """
    Plays a model provider on loopback, as its script says.

    ::

        with FakeProvider(echo) as provider:
            client = AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0)

    The script runs in the server's thread, one request at a time. It may be replaced while the
    server runs. Closing breaks off what is still being answered. An exception of the script is
    answered with a 500 and raised again when the ``with`` block ends without another one.
    """

    def __init__(
        self,
        script: Script = echo,
        *,
        port: int = 0,
        log: Path | None = None,
        models: tuple[str, ...] = ("fake-model",),
    ) -> None:
        self.script = script
        self._port = port
        self._log_path = log
        self._log: Log | None = None
        self._models = models
        self._captured: deque[Captured] = deque(maxlen=KEPT)
        self._conversations: dict[str, int] = {}
        self._count = 0
        self._script_error: Exception | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The base without a version, as the Anthropic client wants it."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    @property
    def requests(self) -> list[Captured]:
        """The requests so far, those under way included."""
        return list(self._captured)

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", self._port), backlog=1024)
        self._port = self._socket.getsockname()[1]
        self._log = Log(self._log_path) if self._log_path else None
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="fake-provider", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        if self._log is not None:
            self._log.close()
        if self._script_error is not None and error is None:
            raise self._script_error

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        def factory() -> asyncio.StreamReaderProtocol:
            return asyncio.StreamReaderProtocol(Watched(), connect)

        def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert isinstance(reader, Watched)
            task = connections.create_task(self._connection(reader, writer))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        async with asyncio.TaskGroup() as connections:
            server = await self._loop.create_server(factory, sock=self._socket)
            await self._closing.wait()
            server.close()
            for task in list(self._connections):
                task.cancel()

    async def _connection(self, reader: Watched, writer: asyncio.StreamWriter) -> None:
        try:
            while (http := await read_request(reader)) is not None:
                await self._respond(http, reader, writer)
        except OSError:
            log.debug("a client went away", exc_info=True)
        finally:
            writer.close()

    async def _respond(
        self, http: HttpRequest, reader: Watched, writer: asyncio.StreamWriter
    ) -> None:
        format_ = ROUTES.get(http.path) if http.method == "POST" else None
        if format_ is not None:
            await self._answer(http, format_, reader, writer)
            return
        out = Outbound(writer, "req_other")
        if http.path == "/v1/models":
            await out.send_json(200, self._model_list(http))
        elif http.path == "/_fake/requests":
            await out.send_json(200, [as_json(captured) for captured in self._captured])
        else:
            await out.send_json(404, {"error": {"message": f"no such path: {http.path}"}})

    def _model_list(self, http: HttpRequest) -> dict[str, object]:
        if "anthropic-version" not in http.headers:
            data = [
                {"id": name, "object": "model", "created": CREATED, "owned_by": "fake"}
                for name in self._models
            ]
            return {"object": "list", "data": data}
        day = "2023-11-14T22:13:20Z"
        data = [
            {"type": "model", "id": name, "display_name": name, "created_at": day}
            for name in self._models
        ]
        first, last = self._models[0], self._models[-1]
        return {"data": data, "has_more": False, "first_id": first, "last_id": last}

    async def _answer(
        self, http: HttpRequest, format_: Format, reader: Watched, writer: asyncio.StreamWriter
    ) -> None:
        captured = self._capture(http, format_)
        out = Outbound(writer, f"req_{captured.number:06}")
        try:
            captured.outcome = await _unless_gone(reader, self._decide(captured, format_, out))
        except asyncio.CancelledError:
            captured.outcome = "server_closed"
            raise
        except OSError:
            captured.outcome = "client_gone"
            raise
        finally:
            captured.status = out.status
            self._ended(captured)

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
        self._captured.append(captured)
        return captured

    def _ended(self, captured: Captured) -> None:
        captured.ended, captured.ended_wall = time.monotonic(), time.time()
        if self._log is not None:
            self._log.append(captured)

    async def _decide(self, captured: Captured, format_: Format, out: Outbound) -> Outcome:
        if captured.json is None:
            message = "We could not parse the JSON body of your request."
            await out.send_json(*refusal(format_, message, captured.number))
            return "refused"
        request = self._request(captured, format_)
        try:
            reply = self.script(request)
        except Exception as error:
            log.exception("the script failed")
            self._script_error = error
            await out.send_json(500, {"error": {"message": f"the script failed: {error!r}"}})
            return "script_failed"
        return await Player(request, out, captured).play(reply)

    def _request(self, captured: Captured, format_: Format) -> Request:
        body = captured.json or {}
        messages = parse_messages(format_, body)
        texts = [text for m in messages if m.role == "user" for text in m.texts]
        first = texts[0] if texts else ""
        earlier = self._conversations.get(first, 0)
        self._conversations[first] = earlier + 1
        return Request(
            number=captured.number,
            format=format_,
            model=str(body.get("model", "")),
            messages=messages,
            tools=tool_names(body),
            stream=captured.stream,
            earlier=earlier,
            raw=body,
        )


async def _unless_gone(reader: Watched, work: Coroutine[None, None, Outcome]) -> Outcome:
    """Do the work, but stop it when the client goes away."""
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(work)
        watching = tasks.create_task(reader.gone.wait())
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        working.cancel()
    return "client_gone" if working.cancelled() else working.result()
