"""
The gateway's life: it serves, says so, warms up, is told to stop, drains.

It serves before it has imported what makes answers, since the model library alone takes a second:
health and the list of models are answered at once, whatever needs the engine waits for it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog

from clew.api.health import offered_models
from clew.api.listening import base_url, bind_sockets, close_sockets
from clew.api.serving import serve_app
from clew.api.shutdown import ShutdownSignals
from clew.api.starting import StartupApp
from clew.api.whereabouts import advertise, discover_server
from clew.cli.common import undisturbed
from clew.cli.logs import logs_to_stderr
from clew.cli.model_check import refuse_unusable_models
from clew.cli.settings_check import find_problems
from clew.config import ensure_home
from clew.errors import GatewayRunning, PortTaken, SettingsError
from clew.store import health
from clew.store.opening import open_store, sqlite_path
from clew.store.sqlite import detect_filesystem

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

    from starlette.applications import Starlette

    from clew.config import Settings
    from clew.gateway.gateway import Gateway
    from clew.runtime import Application

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """
    Serve until SIGTERM or SIGINT.

    :raises ClewError: if it cannot be started
    """
    with (
        logs_to_stderr(settings),
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        runner.run(until_told_to_stop(lambda: _live(settings)))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  (not on Windows)

    return uvloop.new_event_loop


async def until_told_to_stop(work: Callable[[], Awaitable[None]]) -> None:
    """Work until it is done, or SIGTERM or SIGINT says that it should end."""
    me = asyncio.current_task()
    assert me is not None
    told: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        log.info("stopping", signal=number.name)
        if not told:
            me.cancel()
        told.append(number)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # Windows: Ctrl-C is KeyboardInterrupt there
            loop.add_signal_handler(number, stop, number)
    try:
        await work()
    except asyncio.CancelledError:
        if not told:
            raise
    log.info("stopped")


async def _live(settings: Settings) -> None:
    if found := find_problems(settings):
        raise SettingsError(*found)
    ensure_home(settings)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(
            await open_store(settings.store.url, home=settings.home)
        )
        if (file := sqlite_path(settings.store.url, home=settings.home)) is not None:
            mode = await store.read(health.read_journal_mode)
            log.info("store_opened", journal=mode, filesystem=detect_filesystem(file) or "unknown")
        sockets = _listen(settings)
        stack.callback(close_sockets, sockets)
        url, name = base_url(sockets[0]), uuid4().hex
        _refuse_broken_code(settings)
        refuse_unusable_models(settings)
        stack.enter_context(advertise(settings.home, url=url, name=name))
        leaving = ShutdownSignals()
        models, token = offered_models(settings.model.name), settings.api.token
        app = StartupApp(models=models, token=token, leaving=leaving)
        serving = serve_app(app, sockets, leaving=leaving, on_ready=_say_ready)
        server = await stack.enter_async_context(_background(serving))
        parts = await asyncio.to_thread(_import_parts)
        product = await stack.enter_async_context(
            parts.open_product(settings, role="serve", store=store)
        )
        # What was imported stays: looking through it again and again would delay answers.
        gc.freeze()
        await stack.enter_async_context(parts.gateway(product.engine, settings))
        # Before the engine: whoever still waits learns that the answer will be in the conversation.
        stack.push_async_callback(_end, server)
        app.set_app(parts.create_app(product.engine, settings, leaving=leaving, name=name))
        await server


def _say_ready(url: str) -> None:
    print(f"ready {url}", flush=True)


@asynccontextmanager
async def _background(work: Coroutine[None, None, None]) -> AsyncGenerator[asyncio.Task[None]]:
    """Run the server beside the block, and end it with the block at the latest."""
    task = asyncio.create_task(work, name="server")
    try:
        yield task
    finally:
        await _end(task)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parts:
    """What takes long to import, the model library above all."""

    open_product: Callable[..., AbstractAsyncContextManager[Application]]
    gateway: type[Gateway]
    create_app: Callable[..., Starlette]


def _import_parts() -> _Parts:
    """Import what serves, in a thread, so that the first requests are answered meanwhile."""
    with undisturbed():
        from clew.api.app import create_app  # noqa: PLC0415  (after the server has begun)
        from clew.gateway.gateway import Gateway  # noqa: PLC0415  (after the server has begun)
        from clew.runtime import open_application  # noqa: PLC0415  (after the server has begun)
    return _Parts(open_product=open_application, gateway=Gateway, create_app=create_app)


def _listen(settings: Settings) -> list[socket.socket]:
    """
    Listen where the settings say.

    :raises GatewayRunning: if this home's own gateway does so already
    """
    try:
        return bind_sockets(settings.api)
    except PortTaken as taken:
        running = discover_server(settings.home)
        if running is None or running.pid is None or not running.url.endswith(f":{taken.port}"):
            raise
        if not _is_alive(running.pid):
            raise  # it was killed, and somebody else has its port
        raise GatewayRunning(str(settings.home), pid=running.pid, url=running.url) from taken


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it belongs to another user
    return True


def _refuse_broken_code(settings: Settings) -> None:
    """Import a person's own code before anybody is told to come: it may not be right."""
    if settings.agent.object is None and not settings.tools.modules:
        return
    with undisturbed():
        from clew.runtime import make_agent  # noqa: PLC0415  (only then before the port is open)
    make_agent(settings, "")
