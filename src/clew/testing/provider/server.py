"""The fake provider: a real HTTP server that records its requests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clew.testing.fake_server import FakeServer
from clew.testing.provider.capture import CapturedRequest, serialize_capture
from clew.testing.provider.handler import RequestHandler
from clew.testing.provider.http import ResponseWriter
from clew.testing.provider.resolved_reply import CREATED_AT
from clew.testing.provider.scripts import echo

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path
    from types import TracebackType

    from clew.testing.provider.http import HttpRequest, WatchedReader
    from clew.testing.provider.request import Script, WireFormat

FORMATS_BY_PATH: dict[str, WireFormat] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}


class FakeProvider(FakeServer):
    """
    Acts as a model provider on loopback, as scripted.

    ::

        with FakeProvider(echo) as provider:
            client = AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0)

    The script runs in the server's thread, one request at a time, and must not block. It
    may be replaced while the server runs. An exception of the script is answered with a 500
    and raised again when the ``with`` block ends without another one. A request with a
    history that a real provider would reject is rejected with the same message and never
    reaches the script (``strict``); so is one in which user and assistant do not alternate
    (``templates``). Closing the server aborts all responses in progress.
    """

    def __init__(
        self,
        script: Script = echo,
        *,
        port: int = 0,
        log: Path | None = None,
        models: tuple[str, ...] = ("fake-model",),
        strict: bool = True,
        templates: bool = True,
    ) -> None:
        super().__init__(port=port)
        self._handler = RequestHandler(script, log=log, strict=strict, templates=templates)
        self._models = models

    @property
    def script(self) -> Script:
        return self._handler.script

    @script.setter
    def script(self, script: Script) -> None:
        self._handler.script = script

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """Return the base URL without a version."""
        return self.url

    @property
    def requests(self) -> list[CapturedRequest]:
        """Return the last 10,000 requests, those in progress included."""
        return list(self._handler.captured)

    def wait_until_settled(self, timeout: float = 5.0) -> list[CapturedRequest]:
        """
        Return the requests, once none is in progress.

        A client gets its response shortly before the record of the request is complete: use
        this, not :attr:`requests`, for outcomes and end times.

        :raises TimeoutError: if one is still being answered after ``timeout`` seconds
        """
        end = time.monotonic() + timeout
        while any(captured.outcome == "open" for captured in self.requests):
            if time.monotonic() > end:
                raise TimeoutError(f"a request is still being answered after {timeout} s")
            time.sleep(0.001)
        return self.requests

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._handler.script_error is not None and error is None:
            raise self._handler.script_error

    async def _respond(
        self, http: HttpRequest, reader: WatchedReader, writer: asyncio.StreamWriter
    ) -> bool:
        format_ = FORMATS_BY_PATH.get(http.path) if http.method == "POST" else None
        if format_ is not None:
            await self._handler.handle_request(http, format_, reader, writer)
            return True
        out = ResponseWriter(writer, "req_other")
        if http.path == "/v1/models":
            await out.send_json(200, model_list_json(http, self._models))
        elif http.path == "/_fake/requests":
            await out.send_json(200, [serialize_capture(captured) for captured in self.requests])
        else:
            await out.send_json(404, {"error": {"message": f"no such path: {http.path}"}})
        return True


def model_list_json(http: HttpRequest, names: tuple[str, ...]) -> dict[str, object]:
    """Return the offered models in the format of the client."""
    if "anthropic-version" not in http.headers:
        common = {"object": "model", "created": CREATED_AT, "owned_by": "fake"}
        return {"object": "list", "data": [{"id": name, **common} for name in names]}
    day = "2023-11-14T22:13:20Z"
    data = [{"type": "model", "id": n, "display_name": n, "created_at": day} for n in names]
    return {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}
