"""Background tasks and child processes: run one during a block, end some and wait for it."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncGenerator, Awaitable, Coroutine

T = TypeVar("T")


@asynccontextmanager
async def run_in_background(
    work: Coroutine[None, None, None], *, name: str
) -> AsyncGenerator[asyncio.Task[None]]:
    """Run work as a task, and cancel it when the block ends."""
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        await cancel_and_wait(task)


async def cancel_and_wait(*tasks: asyncio.Future[Any], grace: float | None = None) -> None:
    """
    Cancel tasks and wait until they have ended; their outcomes are discarded.

    :param grace: seconds to wait; a task that cannot be cancelled is logged and left behind
    """
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=grace)
    for task in tasks:
        if not task.done():
            _warn_of_task(task)
        elif not task.cancelled():
            # Retrieved, so that asyncio does not report it as lost.
            task.exception()


def _warn_of_task(task: asyncio.Future[Any]) -> None:
    # The sandbox, which imports this module, needs nothing but the standard library.
    import structlog  # noqa: PLC0415  (as said)

    structlog.get_logger(__name__).warning("task_left_behind", task=str(task))


async def shield_until_done(work: Awaitable[T], *, grace: float | None = None) -> T:
    """
    Wait for work that a cancellation must not break off; it is raised once the outcome is known.

    A store does not undo a job that it has begun, nor does a platform take back a message: a
    caller that went on meanwhile would know nothing of it.

    :param grace: seconds that the work gets after a cancellation; then it is cancelled, too
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _wait_despite_cancellations(task, math.inf if grace is None else grace)
        task.cancel()
        await _wait_despite_cancellations(task)
        if not task.cancelled():
            # Its outcome is retrieved, since no caller is left to receive it.
            task.exception()
        raise


async def _wait_despite_cancellations(task: asyncio.Future[Any], longest: float = math.inf) -> None:
    # A caller that is cancelled again, as by one that cancels what it waits for, waits as well.
    loop = asyncio.get_running_loop()
    end = loop.time() + longest
    while not task.done() and (left := end - loop.time()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task}, timeout=None if left == math.inf else left)


async def start_child(*argv: str, **options: Any) -> Process:
    """
    Start a child process, as ``asyncio.create_subprocess_exec`` does; a cancellation ends it.

    The library kills it then, too, but leaves pipes open that it was about to connect.
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*argv, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await shield_until_done(_end_once_started(starting))
        raise


async def _end_once_started(starting: asyncio.Future[Process]) -> None:
    await asyncio.wait({starting})
    if starting.exception() is None:
        await kill_and_wait(starting.result())


async def kill_and_wait(child: Process) -> None:
    """
    Kill a child process that may still run, and wait for its end, whoever is cancelled.

    Where it leads a process group, all of that ends: a child that it has just made may wait for
    it, and would do so for ever.
    """
    if child.returncode is None:
        with suppress(ProcessLookupError):
            _kill(child)
    transport: asyncio.SubprocessTransport = cast("Any", child)._transport  # noqa: SLF001  (no other way)
    # Its end is known only once its pipes are closed, and what it has started may hold them.
    for pipe in map(transport.get_pipe_transport, range(3)):
        if pipe is not None:
            pipe.close()
    await shield_until_done(_wait_for_end(child))


def _kill(child: Process) -> None:
    if os.getpgid(child.pid) == child.pid:
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()


async def _wait_for_end(child: Process) -> None:
    await child.wait()
    # Where it had ended before, its pipes close in the next round of the event loop.
    await asyncio.sleep(0)
