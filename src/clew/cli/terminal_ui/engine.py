"""
The engine of a terminal UI, in a thread with an event loop of its own.

Whatever it does, keys are echoed; and it is loaded while the first picture is seen.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

from anyio.from_thread import start_blocking_portal

from clew.api.whereabouts import discover_server
from clew.cli.common import undisturbed
from clew.errors import ClewError
from clew.tui.transports import ConnectionLost, Refused, websocket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from concurrent.futures import Future

    from anyio.from_thread import BlockingPortal

    from clew.api.rpc.office import RpcContext
    from clew.api.whereabouts import ServerAddress
    from clew.config import Settings
    from clew.tui.transports import Connection


#: Seconds that a server which has gone may take to come back before this process works by itself.
_PATIENCE: Final = 15.0


class Behind:
    """What is behind a screen: the server that runs on this home, else an engine in a thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._office: RpcContext | None = None
        #: When a server was last there.
        self._attached: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Connection]:
        """
        A connection.

        :raises ConnectionLost: while a server that was there is waited for
        :raises Refused: if none can be had
        """
        if self._office is None and (found := discover_server(self._settings.home)) is not None:
            async with AsyncExitStack() as stack:
                if (server := await self._reached(found, stack)) is not None:
                    yield server
                    self._attached = time.monotonic()
                    return
        if self._attached is not None and time.monotonic() - self._attached < _PATIENCE:
            raise ConnectionLost("the server has gone")
        async with self._by_itself() as connection:
            yield connection

    async def _reached(self, found: ServerAddress, stack: AsyncExitStack) -> Connection | None:
        """A connection to a server; ``None`` if it is not there any more."""
        api = self._settings.api
        token = None if api.token is None else api.token.reveal()
        try:
            connect = websocket(found.websocket_url, token=token, server=found.name)
            server = await stack.enter_async_context(connect())
        except ConnectionLost:
            return None
        except Refused as error:
            if error.other:
                return None
            raise
        self._attached = time.monotonic()
        return server

    @asynccontextmanager
    async def _by_itself(self) -> AsyncGenerator[Connection]:
        if self._office is None:
            await asyncio.to_thread(self._begin)
        assert self._portal is not None
        assert self._office is not None
        bridge = _Bridge(asyncio.get_running_loop())
        serving = self._portal.start_task_soon(bridge.serve, self._office)
        try:
            yield bridge
        finally:
            await bridge.close(serving)

    def _begin(self) -> None:
        try:
            self._start()
        except ClewError as error:
            raise Refused(str(error)) from error
        except OSError as error:
            home = self._settings.home
            raise Refused(
                f"{home} cannot be written to: {error.strerror}; mend that, or name another folder "
                "with --home or CLEW_HOME"
            ) from error

    def _start(self) -> None:
        # Half a second of imports: the person sees the screen meanwhile.
        with undisturbed():
            from clew.api.rpc.office import RpcContext  # noqa: PLC0415
            from clew.cli.logs import logs_to_file  # noqa: PLC0415
            from clew.runtime import open_application  # noqa: PLC0415

        self._stack.enter_context(logs_to_file(self._settings))
        portal = self._stack.enter_context(start_blocking_portal("asyncio"))
        product = self._stack.enter_context(
            portal.wrap_async_context_manager(
                open_application(self._settings, role="tui", own_only=True)
            )
        )
        self._portal = portal
        self._office = RpcContext(
            engine=product.engine, settings=self._settings, may_configure=True
        )


class _Bridge:
    """Frames between the loop of the screen and that of the engine."""

    def __init__(self, here: asyncio.AbstractEventLoop) -> None:
        self._here = here
        self._back: asyncio.Queue[str | None] = asyncio.Queue()
        #: Set in the other loop, once it serves.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._there: asyncio.Queue[str | None] = asyncio.Queue()
        self._ready = asyncio.Event()

    async def send(self, frame: str) -> None:
        await self._ready.wait()
        self._put(frame)

    def _put(self, frame: str | None) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._there.put_nowait, frame)

    async def receive(self) -> str:
        frame = await self._back.get()
        if frame is None:
            self._back.put_nowait(None)
            raise ConnectionLost("the engine has stopped")
        return frame

    async def close(self, serving: Future[None]) -> None:
        await self._ready.wait()
        self._put(None)
        await asyncio.wrap_future(serving)

    async def serve(self, office: RpcContext) -> None:
        """In the engine's loop."""
        from clew.api.rpc.peer import serve_client  # noqa: PLC0415  (loaded with the engine)

        self._loop = asyncio.get_running_loop()
        self._here.call_soon_threadsafe(self._ready.set)
        try:
            await serve_client(office, self._frames(), self._answer)
        finally:
            self._here.call_soon_threadsafe(self._back.put_nowait, None)

    async def _frames(self) -> AsyncIterator[str]:
        while (frame := await self._there.get()) is not None:
            yield frame

    async def _answer(self, frame: str) -> None:
        self._here.call_soon_threadsafe(self._back.put_nowait, frame)
