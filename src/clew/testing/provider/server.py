"""The fake provider: a real HTTP server, and what was asked of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clew.testing.provider.answers import CREATED
from clew.testing.provider.capture import Captured, as_json
from clew.testing.provider.http import Outbound
from clew.testing.provider.intake import Intake
from clew.testing.provider.scripts import echo
from clew.testing.serving import FakeServer

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path
    from types import TracebackType

    from clew.testing.provider.http import HttpRequest, Watched
    from clew.testing.provider.request import Format, Script

ROUTES: dict[str, Format] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}


class FakeProvider(FakeServer):
    """
    Plays a model provider on loopback, as its script says.

    ::

        with FakeProvider(echo) as provider:
            client = AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0)

    The script runs in the server's thread, one request at a time, and must not block. It may be
    replaced while the server runs. An exception of the script is answered with a 500 and raised
    again when the ``with`` block ends without another one. A request whose history a real provider
    would refuse is refused with its words and never reaches the script (``strict``); so is one in
    which the person and the model do not take turns (``templates``). Closing breaks off what is
    still being answered.
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
        self._intake = Intake(script, log=log, strict=strict, templates=templates)
        self._models = models

    @property
    def script(self) -> Script:
        return self._intake.script

    @script.setter
    def script(self, script: Script) -> None:
        self._intake.script = script

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base without a version."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._intake.script_error is not None and error is None:
            raise self._intake.script_error

    async def _respond(
        self, http: HttpRequest, reader: Watched, writer: asyncio.StreamWriter
    ) -> bool:
        format_ = ROUTES.get(http.path) if http.method == "POST" else None
        if format_ is not None:
            await self._intake.answer(http, format_, reader, writer)
            return True
        out = Outbound(writer, "req_other")
        if http.path == "/v1/models":
            await out.send_json(200, model_list(http, self._models))
        elif http.path == "/_fake/requests":
            await out.send_json(200, [as_json(captured) for captured in self.requests])
        else:
            await out.send_json(404, {"error": {"message": f"no such path: {http.path}"}})
        return True


def model_list(http: HttpRequest, names: tuple[str, ...]) -> dict[str, object]:
    """The models on offer, in the format of the client that asks."""
    if "anthropic-version" not in http.headers:
        common = {"object": "model", "created": CREATED, "owned_by": "fake"}
        return {"object": "list", "data": [{"id": name, **common} for name in names]}
    day = "2023-11-14T22:13:20Z"
    data = [{"type": "model", "id": n, "display_name": n, "created_at": day} for n in names]
    return {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}
