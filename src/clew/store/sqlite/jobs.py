"""Jobs that wait for a thread of the store."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from clew.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Job:
    """Function to run, its caller's future, and its outcome."""

    __slots__ = ("args", "call", "error", "final", "future", "kwargs", "loop", "topics", "value")

    def __init__(
        self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.call, self.args, self.kwargs = call, args, kwargs
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.value: Any = None
        self.error: BaseException | None = None
        self.topics: set[str] = set()
        #: The outcome cannot change any more: committed, or rolled back.
        self.final = False

    def set_outcome(self, error: BaseException | None = None) -> None:
        """Record the final outcome: ``value``, or ``error``."""
        self.error = error
        self.final = True

    def resolve_future(self) -> None:
        """Resolve the future; runs in the caller's event loop."""
        if self.future.done():  # the caller was cancelled
            return
        if self.error is None:
            self.future.set_result(self.value)
        elif isinstance(self.error, StopIteration):  # a future cannot carry it
            self.future.set_exception(RuntimeError("a job raised StopIteration"))
        else:
            self.future.set_exception(self.error)


def deliver_outcomes(jobs: Iterable[Job]) -> None:
    """Pass the outcomes to the callers: one wake-up per event loop, from any thread."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, mine in by_loop.items():
        with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits
            loop.call_soon_threadsafe(_resolve_all, mine)


def _resolve_all(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.resolve_future()


def fail_unfinished(jobs: Sequence[Job], error: StoreUnavailable) -> None:
    """Deliver the final outcomes among ``jobs``, and ``error`` to the others."""
    for job in jobs:
        if not job.final:
            job.set_outcome(StoreUnavailable(str(error)))
    deliver_outcomes(jobs)
