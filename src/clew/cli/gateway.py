"""The gateway's life: started, ready, told to stop, drained."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from clew.api.serving import serve
from clew.cli.logs import log_to_stderr
from clew.runtime import open_product

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.config import Settings

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    log_to_stderr(settings)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_until_told_to_stop(settings))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  (not on Windows)

    return uvloop.new_event_loop


async def _until_told_to_stop(settings: Settings) -> None:
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
        async with open_product(settings, role="serve") as product:
            await serve(product.engine, settings, on_ready=_say_ready)
    except asyncio.CancelledError:
        if not told:
            raise
    log.info("stopped")


def _say_ready(url: str) -> None:
    print(f"ready {url}", flush=True)
