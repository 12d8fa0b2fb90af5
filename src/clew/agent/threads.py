"""Threads for synchronous tools: one for each call, and none that the program would wait for."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Threads(Executor):
    """
    Starts a daemon thread for each call.

    A pool would be used up by tools that hang, and an ordinary thread that hangs would keep the
    program from ending.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        run = (future, lambda: fn(*args, **kwargs))
        threading.Thread(target=_run, args=run, name="tool", daemon=True).start()
        return future


def _run(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except StopIteration as error:
        # A coroutine cannot raise it.
        future.set_exception(RuntimeError(f"StopIteration: {error}"))
    except BaseException as error:  # noqa: BLE001  (raised where it is waited for)
        future.set_exception(error)
    else:
        future.set_result(result)
