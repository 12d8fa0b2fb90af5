"""
Backend of a client in this process: the running server, else an engine in a thread.

The engine has its own event loop, so that it never delays the echo of keys, and is imported
while the first screen is visible, or while an editor says what it can do.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

from anyio.from_thread import start_blocking_portal

from clew.cli.common import fast_import
from clew.cli.logs import logs_to_file
from clew.cli.server_connection import connect_to_server
from clew.errors import ClewError
from clew.tui.transports import ConnectionLost, ConnectionRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from anyio.from_thread import BlockingPortal

    from clew.api.operation_context import OperationContext
    from clew.config import Settings
    from clew.tui.transports import FrameConnection


#: Seconds to wait for a lost server before this process starts its own engine.
_RECONNECT_TIMEOUT: Final = 15.0


class ClientBackend:
    """
    Backend of a client: the server that runs on this home, else an engine in a thread.

    The engine is opened for this ``role``, and logs as ``logs`` says.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        role: str,
        logs: Callable[[Settings], AbstractContextManager[None]] = logs_to_file,
    ) -> None:
        self._settings, self._role, self._logs = settings, role, logs
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._rpc_server: OperationContext | None = None
        #: When a server was last connected.
        self._last_attached: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[FrameConnection]:
        """
        Open a connection.

        :raises ConnectionLost: while it waits for a server that has gone
        :raises ConnectionRefused: if no connection is possible
        """
        if self._rpc_server is None:
            async with AsyncExitStack() as stack:
                if (server := await connect_to_server(self._settings, stack)) is not None:
                    self._last_attached = time.monotonic()
                    yield server
                    self._last_attached = time.monotonic()
                    return
        if (
            self._last_attached is not None
            and time.monotonic() - self._last_attached < _RECONNECT_TIMEOUT
        ):
            raise ConnectionLost("the server has stopped")
        async with self._connect_to_engine() as connection:
            yield connection

    @asynccontextmanager
    async def _connect_to_engine(self) -> AsyncGenerator[FrameConnection]:
        if self._rpc_server is None:
            await asyncio.to_thread(self._start_engine)
        assert self._portal is not None
        assert self._rpc_server is not None
        bridge = _LoopBridge(asyncio.get_running_loop())
        serving = self._portal.start_task_soon(bridge.serve_frames, self._rpc_server)
        try:
            yield bridge
        finally:
            await bridge.close(serving)

    def _start_engine(self) -> None:
        try:
            self._load_engine()
        except ClewError as error:
            raise ConnectionRefused(str(error)) from error
        except OSError as error:
            home = self._settings.home
            raise ConnectionRefused(
                f"{home} cannot be written to: {error.strerror}; fix that, or name another folder "
                "with --home or CLEW_HOME"
            ) from error

    def _load_engine(self) -> None:
        # Half a second of imports, while the screen is visible.
        with fast_import():
            from clew.api.operation_context import OperationContext  # noqa: PLC0415
            from clew.runtime import open_application  # noqa: PLC0415

        self._stack.enter_context(self._logs(self._settings))
        portal = self._stack.enter_context(start_blocking_portal("asyncio"))
        product = self._stack.enter_context(
            portal.wrap_async_context_manager(
                open_application(self._settings, role=self._role, own_only=True)
            )
        )
        self._portal = portal
        with fast_import():
            operations = product.build_operations()
        self._rpc_server = OperationContext(
            operations=operations,
            engine=product.engine,
            settings=self._settings,
            commands=product.commands,
            may_configure=True,
        )


class _LoopBridge:
    """Frame queue between the event loops of the screen and the engine."""

    def __init__(self, here: asyncio.AbstractEventLoop) -> None:
        self._client_loop = here
        self._to_client: asyncio.Queue[str | None] = asyncio.Queue()
        #: Set in the engine's loop, once it serves.
        self._server_loop: asyncio.AbstractEventLoop | None = None
        self._to_server: asyncio.Queue[str | None] = asyncio.Queue()
        self._ready = asyncio.Event()

    async def send(self, frame: str) -> None:
        await self._ready.wait()
        self._enqueue_frame(frame)

    def _enqueue_frame(self, frame: str | None) -> None:
        if self._server_loop is not None:
            self._server_loop.call_soon_threadsafe(self._to_server.put_nowait, frame)

    async def receive(self) -> str:
        frame = await self._to_client.get()
        if frame is None:
            self._to_client.put_nowait(None)
            raise ConnectionLost("the engine has stopped")
        return frame

    async def close(self, serving: Future[None]) -> None:
        await self._ready.wait()
        self._enqueue_frame(None)
        await asyncio.wrap_future(serving)

    async def serve_frames(self, office: OperationContext) -> None:
        """Serve the client; runs in the engine's loop."""
        from clew.api.rpc.connection import serve_client  # noqa: PLC0415  (loaded with the engine)

        self._server_loop = asyncio.get_running_loop()
        self._client_loop.call_soon_threadsafe(self._ready.set)
        try:
            await serve_client(office, self._iter_frames(), self._return_frame)
        finally:
            self._client_loop.call_soon_threadsafe(self._to_client.put_nowait, None)

    async def _iter_frames(self) -> AsyncIterator[str]:
        while (frame := await self._to_server.get()) is not None:
            yield frame

    async def _return_frame(self, frame: str) -> None:
        self._client_loop.call_soon_threadsafe(self._to_client.put_nowait, frame)
