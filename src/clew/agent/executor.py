"""Executor for synchronous tools: one daemon thread per call."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class DaemonThreadExecutor(Executor):
    """
    Executor that starts a daemon thread for each call.

    Hanging tools would exhaust a pool, and an ordinary thread that hangs would keep the
    program from exiting.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        run = (future, lambda: fn(*args, **kwargs))
        threading.Thread(target=_run_call, args=run, name="tool", daemon=True).start()
        return future


def _run_call(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except StopIteration as error:
        # A coroutine cannot raise StopIteration.
        future.set_exception(RuntimeError(f"StopIteration: {error}"))
    except BaseException as error:  # noqa: BLE001  (raised to the waiting caller)
        future.set_exception(error)
    else:
        future.set_result(result)
