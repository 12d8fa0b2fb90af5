"""Screen of one person: through the protocol's client, or through HTTP."""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

from clew.tui.client import Resumed, RpcClient
from clew.tui.transports import websocket
from clew.wire import methods
from clew.wire.event_models import EntryNotice
from clew.wire.params import OpenParams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clew.wire.event_models import AnyNotice

#: The conversation of all.
NAME = "screens"
_AGAIN = 0.05

#: An entry as it is shown: seq, kind, role and text.
Shown = tuple[int, str, str | None, str]


@dataclass(slots=True)
class Seen:
    """Content of one screen, in order of arrival."""

    entries: list[Shown] = field(default_factory=list[Shown])
    #: Times that it lost its server and came back.
    resumed: int = 0
    #: Something came that others would not draw twice: pieces of text.
    pieces: int = 0

    @property
    def last(self) -> int:
        return self.entries[-1][0] if self.entries else 0

    @property
    def wrong(self) -> int:
        """Entries that are missing, doubled or out of order."""
        return sum(seq != place for place, (seq, *_) in enumerate(self.entries, 1))


class Screen(Protocol):
    seen: Seen

    async def say(self, text: str) -> None:
        """Hand a message in; returns once it is stored, whatever happens to the server."""
        ...

    async def watch(self) -> None:
        """See what happens, for ever."""
        ...


class ProtocolScreen:
    """A terminal UI without its widgets."""

    def __init__(self, url: str) -> None:
        self.seen = Seen()
        self.client = RpcClient(websocket(f"{url.replace('http', 'ws', 1)}/api/ws"))

    async def say(self, text: str) -> None:
        await self.client.submit(NAME, text)

    async def watch(self) -> None:
        async with self.client:
            opened = await self.client.call(methods.OPEN, OpenParams(conversation=NAME))
            async with self.client.follow(opened.conversation.id) as events:
                async for notice in events:
                    self._show(notice)

    def _show(self, notice: AnyNotice | Resumed) -> None:
        if isinstance(notice, Resumed):
            self.seen.resumed += 1
        elif isinstance(notice, EntryNotice):
            self.seen.entries.append((notice.seq, notice.kind, notice.role, notice.text))
        else:
            self.seen.pieces += notice.type == "delta"


class HttpScreen:
    """A page in a browser: server-sent events, and posts with a key."""

    def __init__(self, url: str) -> None:
        self.seen = Seen()
        self._http = httpx2.AsyncClient(base_url=url, timeout=20)

    async def say(self, text: str) -> None:
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        path = f"/api/conversations/{NAME}/messages"
        while True:
            with suppress(httpx2.HTTPError):
                answer = await self._http.post(path, json={"text": text}, headers=headers)
                if answer.status_code == 202:
                    return
                assert answer.status_code == 503, answer.text
            await asyncio.sleep(_AGAIN)

    async def watch(self) -> None:
        async with self._http:
            while True:
                with suppress(httpx2.HTTPError):
                    await self._connected()
                await asyncio.sleep(_AGAIN)
                self.seen.resumed += 1

    async def _connected(self) -> None:
        path, headers = f"/api/conversations/{NAME}/events", {"Last-Event-ID": str(self.seen.last)}
        async with self._http.stream("GET", path, headers=headers) as answer:
            if answer.status_code == 200:
                await self._read(answer.aiter_lines())

    async def _read(self, lines: AsyncIterator[str]) -> None:
        name = ""
        async for line in lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name == "entry":
                told: dict[str, Any] = json.loads(line.removeprefix("data: "))
                self.seen.entries.append((told["seq"], told["kind"], told["role"], told["text"]))
            elif line.startswith("data: "):
                self.seen.pieces += name == "delta"
