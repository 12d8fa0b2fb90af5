"""
The gateway process: start, ready line, late imports, shutdown.

It listens before it imports what produces answers, since the model library alone takes a
second: health and the list of models are answered at once, other requests wait for the
engine.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import signal
import sys
import threading
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import structlog

from clew.api.discovery import advertise, discover_server
from clew.api.health import offered_models
from clew.api.server import serve_app
from clew.api.shutdown import ShutdownSignals
from clew.api.sockets import base_url, bind_sockets, close_sockets
from clew.api.startup_app import StartupApp
from clew.background import cancel_and_wait, run_in_background
from clew.cli.common import fast_import
from clew.cli.logs import logs_to_stderr
from clew.cli.model_check import check_models_usable
from clew.cli.service.notifier import ServiceNotifier
from clew.cli.settings_check import find_settings_problems
from clew.config import ensure_home
from clew.errors import GatewayRunning, PortTaken, SettingsError
from clew.plugin.loading import get_features
from clew.record import Record
from clew.store import health
from clew.store.opening import open_store, sqlite_path
from clew.store.sqlite import detect_filesystem

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from starlette.applications import Starlette

    from clew.config import Settings
    from clew.gateway.gateway import Gateway
    from clew.hooks.manager import PluginManager
    from clew.runtime import Application

log = structlog.get_logger(__name__)

#: Name of the thread that ends a program which has not ended by itself.
SHUTDOWN_LIMIT: Final = "shutdown limit"
#: Seconds after a signal to stop: process managers kill after ten, and all is stored anyway.
_STOP_WITHIN: Final = 9.0


def run_gateway(settings: Settings) -> None:
    """
    Serve until SIGTERM or SIGINT.

    :raises ClewError: if the gateway cannot start
    """
    notifier = ServiceNotifier.take_from(os.environ)
    # A process manager that kills a hung gateway by SIGABRT gets the place where it hangs.
    if not faulthandler.is_enabled():
        faulthandler.enable()
    with (
        logs_to_stderr(settings),
        asyncio.Runner(loop_factory=_get_loop_factory()) as runner,
    ):
        runner.run(run_until_signalled(lambda: _serve_gateway(settings, notifier)))


def _get_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  (not on Windows)

    return uvloop.new_event_loop


async def run_until_signalled(work: Callable[[], Awaitable[None]]) -> None:
    """
    Run ``work`` until it is done, or SIGTERM or SIGINT arrives.

    A program that has not ended ten seconds after the signal, as with a thread that hangs, is
    ended then: the next one goes on with what is stored.
    """
    me = asyncio.current_task()
    assert me is not None
    told: list[signal.Signals] = []
    loop = asyncio.get_running_loop()

    def handle_signal(number: signal.Signals) -> None:
        log.info("stopping", signal=number.name)
        if not told:
            me.cancel()
            _limit_shutdown(loop)
        told.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # Windows: Ctrl-C is KeyboardInterrupt there
            loop.add_signal_handler(number, handle_signal, number)
    try:
        await work()
    except asyncio.CancelledError:
        if not told:
            raise
    log.info("stopped")


def _limit_shutdown(loop: asyncio.AbstractEventLoop) -> None:
    """End the process in time, whatever its event loop and its threads do."""

    def end_process() -> None:
        if not loop.is_closed():
            tasks = sorted(task.get_name() for task in asyncio.all_tasks(loop))
            log.warning("stopped_late", seconds=_STOP_WITHIN, tasks=tasks)
        os._exit(0)

    # Never cancelled: threads that hang keep a process from ending after its last line.
    limit = threading.Timer(_STOP_WITHIN, end_process)
    limit.name, limit.daemon = SHUTDOWN_LIMIT, True
    limit.start()


async def _serve_gateway(settings: Settings, notifier: ServiceNotifier) -> None:
    if found := find_settings_problems(settings):
        raise SettingsError(*found)
    ensure_home(settings)
    features = get_features(settings)
    features.raise_problems()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(
            await open_store(settings.store.url, home=settings.home, features=features.schemas)
        )
        if (file := sqlite_path(settings.store.url, home=settings.home)) is not None:
            mode = await store.read(health.read_journal_mode)
            log.info("store_opened", journal=mode, filesystem=detect_filesystem(file) or "unknown")
        sockets = _bind_sockets(settings)
        stack.callback(close_sockets, sockets)
        url, name = base_url(sockets[0]), uuid4().hex
        _check_user_code(settings)
        plugins = await _load_plugins(settings)
        check_models_usable(settings)
        stack.enter_context(advertise(settings.home, url=url, name=name))
        leaving = ShutdownSignals()
        models, token = offered_models(settings.model.name), settings.api.token
        app = StartupApp(models=models, token=token, leaving=leaving)
        serving = serve_app(app, sockets, leaving=leaving, on_ready=_print_ready)
        server = await stack.enter_async_context(run_in_background(serving, name="server"))
        parts = await asyncio.to_thread(_import_parts)
        product = await stack.enter_async_context(
            parts.open_product(settings, role="serve", store=store, plugins=plugins)
        )
        # Imported objects stay alive: scanning them at each collection would delay answers.
        gc.freeze()
        await stack.enter_async_context(
            parts.gateway(product.engine, settings, commands=product.commands)
        )
        # Closed before the engine: waiting clients learn that the answer will be stored.
        stack.push_async_callback(cancel_and_wait, server)
        app.set_app(
            parts.create_app(
                product.engine,
                settings,
                operations=product.build_operations(),
                commands=product.commands,
                leaving=leaving,
                name=name,
            )
        )
        notifier.report_ready(url)
        watched = run_in_background(notifier.keep_watchdog(), name="watchdog")
        await stack.enter_async_context(watched)
        stack.callback(notifier.report_stopping)
        await server


def _print_ready(url: str) -> None:
    print(f"ready {url}", flush=True)


class _Parts(Record):
    """The parts of the gateway that are slow to import, above all the model library."""

    open_product: Callable[..., AbstractAsyncContextManager[Application]]
    gateway: type[Gateway]
    create_app: Callable[..., Starlette]


def _import_parts() -> _Parts:
    """Import the remaining parts in a thread while the first requests are answered."""
    with fast_import():
        from clew.api.app import create_app  # noqa: PLC0415  (after the server has begun)
        from clew.gateway.gateway import Gateway  # noqa: PLC0415  (after the server has begun)
        from clew.runtime import open_application  # noqa: PLC0415  (after the server has begun)
    return _Parts(open_product=open_application, gateway=Gateway, create_app=create_app)


def _bind_sockets(settings: Settings) -> list[socket.socket]:
    """
    Listen where the settings say.

    :raises GatewayRunning: if this home's own gateway already does
    """
    try:
        return bind_sockets(settings.api)
    except PortTaken as taken:
        running = discover_server(settings.home)
        if running is None or running.pid is None or not running.url.endswith(f":{taken.port}"):
            raise
        if not running.is_running:
            raise  # it was killed, and another program has its port
        raise GatewayRunning(str(settings.home), pid=running.pid, url=running.url) from taken


def _check_user_code(settings: Settings) -> None:
    """Import the user's own code before the gateway reports ready; it may be broken."""
    if settings.agent.object is None and not settings.tools.modules:
        return
    with fast_import():
        from clew.runtime import make_agent  # noqa: PLC0415  (only then before the port is open)
    make_agent(settings, "")


async def _load_plugins(settings: Settings) -> PluginManager | None:
    """Set the enabled plugins up; ``None`` if there are none."""
    if not settings.plugins.enabled:
        return None
    from clew.plugin.enabled import load_enabled_plugins  # noqa: PLC0415  (as above)

    # One that hangs must not keep signals from being heard.
    return await asyncio.to_thread(load_enabled_plugins, settings)
