"""The thread of one plugin, in which it registers and its callbacks run one after another."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from concurrent.futures import Future
from contextlib import nullcontext
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.features.hermes.watch import PluginWatch

T = TypeVar("T")

log = structlog.get_logger(__name__)

#: Calls that may wait for a plugin that is slow; further ones are left out, and logged once.
_MAX_WAITING: Final = 1000


class PluginWorker:
    """A thread that does not keep the process; what it runs cannot end it."""

    def __init__(self, name: str, watch: PluginWatch | None = None) -> None:
        self._name, self._watch = name, watch
        self._jobs: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._is_full = False

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Run a job after those before it, in the context of the caller."""
        done: Future[T] = Future()
        context = copy_context()
        self._jobs.put((lambda: context.run(job), done))
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name=f"hermes:{self._name}", daemon=True
            )
            # Not in the context of the first caller.
            Context().run(self._thread.start)
        return done

    def call(self, job: Callable[[], T], *, seconds: float) -> T:
        """
        Run a job, and wait for its result.

        :raises TimeoutError: if there is none in time
        """
        done = self.submit(job)
        try:
            return done.result(seconds)
        except TimeoutError:
            done.cancel()  # a job that waits is not run late
            raise

    def post(self, job: Callable[[], object]) -> None:
        """Run a job for which nobody waits; what it raises is logged."""
        if self._jobs.qsize() >= _MAX_WAITING:
            if not self._is_full:
                log.warning("hermes_plugin_left_behind", plugin=self._name)
            self._is_full = True
            return
        self._is_full = False
        self.submit(job).add_done_callback(self._log_failure)

    def _log_failure(self, done: Future[Any]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            log.warning("hermes_plugin_failed", plugin=self._name, error=repr(error))

    def _run(self) -> None:
        while True:
            job, done = self._jobs.get()
            with nullcontext() if self._watch is None else self._watch.running():
                run_job(job, done)


class BriefCalls:
    """
    Calls to a plugin for which a transaction waits, and with it every writer of the store.

    While one that took too long still runs, others are not begun.
    """

    #: Seconds for an answer; a memory that is asked over a network needs some.
    SECONDS: Final = 0.4

    def __init__(self, worker: PluginWorker) -> None:
        self._worker = worker
        self._late: Future[Any] | None = None

    def call(self, job: Callable[[], T]) -> T:
        """
        Run a job, and wait for its result.

        :raises TimeoutError: if there is none in time
        """
        if self._late is not None and not self._late.done():
            raise TimeoutError
        done = self._worker.submit(job)
        try:
            return done.result(self.SECONDS)
        except TimeoutError:
            self._late = None if done.cancel() else done
            raise


def run_job(job: Callable[[], Any], done: Future[Any]) -> None:
    """Run a job, and pass on what it returns or raises; an exit is an error like others."""
    if not done.set_running_or_notify_cancel():
        return
    try:
        result = job()
    except StopIteration as error:
        # A future cannot pass StopIteration on.
        done.set_exception(RuntimeError(f"StopIteration: {error}"))
    except Exception as error:  # noqa: BLE001  (raised to the waiting caller)
        done.set_exception(error)
    except BaseException as error:  # noqa: BLE001  (SystemExit must not end the thread or Clew)
        done.set_exception(RuntimeError(f"the plugin raised {type(error).__name__}"))
    else:
        done.set_result(result)


def run_in_thread(name: str, job: Callable[[], T]) -> Future[T]:
    """Run a job in a thread of its own: one that may take long, and so delays no hook."""
    done: Future[T] = Future()
    context = copy_context()
    threading.Thread(
        target=run_job, args=(lambda: context.run(job), done), name=f"hermes:{name}", daemon=True
    ).start()
    return done


def finish_call(result: Any) -> Any:
    """Return a result; one of asynchronous code is run to its end first, in this thread."""
    return asyncio.run(_await(result)) if inspect.isawaitable(result) else result


async def _await(result: Any) -> Any:
    return await result
