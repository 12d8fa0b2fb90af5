"""The fake provider: a real HTTP server with a thread and an event loop of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Self

from clew.testing.provider.answers import CREATED
from clew.testing.provider.capture import Captured, as_json
from clew.testing.provider.http import HttpRequest, Outbound, Watched, read_request
from clew.testing.provider.intake import Intake
from clew.testing.provider.scripts import echo

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from clew.testing.provider.request import Format, Script

ROUTES: dict[str, Format] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}


class FakeProvider:
    """
    Plays a model provider on loopback, as its script says.

    ::

        with FakeProvider(echo) as provider:
            client = AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0)

    The script runs in the server's thread, one request at a time, and must not block. It may be
    replaced while the server runs. An exception of the script is answered with a 500 and raised
    again when the ``with`` block ends without another one. A request whose history a real provider
    would refuse is refused with its words and never reaches the script (``strict``). Closing
    breaks off what is still being answered.
    """

    def __init__(
        self,
        script: Script = echo,
        *,
        port: int = 0,
        log: Path | None = None,
        models: tuple[str, ...] = ("fake-model",),
        strict: bool = True,
    ) -> None:
        self._intake = Intake(script, log=log, strict=strict)
        self._port = port
        self._models = models
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def script(self) -> Script:
        return self._intake.script

    @script.setter
    def script(self, script: Script) -> None:
        self._intake.script = script

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
        """The last 10,000 requests, those under way included."""
        return list(self._intake.captured)

    def settled(self, timeout: float = 5.0) -> list[Captured]:
        """
        The requests, once none of them is under way.

        A client has its answer a moment before the record of the request is closed: ask here,
        not in :attr:`requests`, for outcomes and end times.

        :raises TimeoutError: if one is still being answered after ``timeout`` seconds
        """
        end = time.monotonic() + timeout
        while any(captured.outcome == "open" for captured in self.requests):
            if time.monotonic() > end:
                raise TimeoutError(f"a request is still being answered after {timeout} s")
            time.sleep(0.001)
        return self.requests

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", self._port), backlog=1024)
        self._port = self._socket.getsockname()[1]
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
        if self._intake.script_error is not None and error is None:
            raise self._intake.script_error

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as connections:

            def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                assert isinstance(reader, Watched)
                if self._closing.is_set():
                    writer.close()
                    return
                send_at_once(writer)
                task = connections.create_task(self._connection(reader, writer))
                self._connections.add(task)
                task.add_done_callback(self._connections.discard)

            server = await self._loop.create_server(
                lambda: asyncio.StreamReaderProtocol(Watched(), connected), sock=self._socket
            )
            await self._closing.wait()
            server.close()
            for task in list(self._connections):
                task.cancel()

    async def _connection(self, reader: Watched, writer: asyncio.StreamWriter) -> None:
        # Suppressed: the client went away, which must not end the server.
        with closing(writer), suppress(OSError):
            while (http := await read_request(reader)) is not None:
                await self._respond(http, reader, writer)

    async def _respond(
        self, http: HttpRequest, reader: Watched, writer: asyncio.StreamWriter
    ) -> None:
        format_ = ROUTES.get(http.path) if http.method == "POST" else None
        if format_ is not None:
            await self._intake.answer(http, format_, reader, writer)
            return
        out = Outbound(writer, "req_other")
        if http.path == "/v1/models":
            await out.send_json(200, model_list(http, self._models))
        elif http.path == "/_fake/requests":
            await out.send_json(200, [as_json(captured) for captured in self.requests])
        else:
            await out.send_json(404, {"error": {"message": f"no such path: {http.path}"}})


def send_at_once(writer: asyncio.StreamWriter) -> None:
    """
    Do not hold small pieces back.

    asyncio does it by itself only for sockets whose protocol is named, which accepted ones of
    :func:`socket.create_server` are not: each streamed answer would wait 40 ms for the client.
    """
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def model_list(http: HttpRequest, names: tuple[str, ...]) -> dict[str, object]:
    """The models on offer, in the format of the client that asks."""
    if "anthropic-version" not in http.headers:
        common = {"object": "model", "created": CREATED, "owned_by": "fake"}
        return {"object": "list", "data": [{"id": name, **common} for name in names]}
    day = "2023-11-14T22:13:20Z"
    data = [{"type": "model", "id": n, "display_name": n, "created_at": day} for n in names]
    return {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}
