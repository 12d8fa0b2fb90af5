"""Ways to a database on which something happens: proxies, each in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tests.integration.postgres_proxy import listening

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class Proxy(Protocol):
    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...


P = TypeVar("P", bound=Proxy)


class Way(Generic[P]):
    """A proxy at work."""

    def __init__(self, url: str, proxy: P, loop: asyncio.AbstractEventLoop) -> None:
        #: Leads through it.
        self.url = url
        self._proxy, self._loop = proxy, loop

    def do(self, what: Callable[[P], object]) -> None:
        """Have something happen on it."""
        self._loop.call_soon_threadsafe(what, self._proxy)


@contextmanager
def way(url: str, make: Callable[[str], P], *, host: str = "127.0.0.1") -> Generator[Way[P]]:
    """A way to the server at ``url``, through what ``make`` makes for it; begins at ``host``."""
    found: list[Way[P]] = []
    begun = threading.Event()

    async def serve() -> None:
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        overs.append((loop, over))
        proxy = make(url)
        async with listening(proxy.handle, url, host=host) as through:
            found.append(Way(through, proxy, loop))
            begun.set()
            await over.wait()

    overs: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="way")
    thread.start()
    try:
        begun.wait()
        yield found[0]
    finally:
        loop, over = overs[0]
        loop.call_soon_threadsafe(over.set)
        thread.join()
