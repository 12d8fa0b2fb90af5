"""A call that waits for its turn in a thread of the store."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from clew.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Job:
    """What to run, who waits for it, and how it ended."""

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
        #: The outcome cannot change any more: committed, or nothing of it stays.
        self.final = False

    def end(self, error: BaseException | None = None) -> None:
        """Note the lasting outcome: ``value``, or ``error``."""
        self.error = error
        self.final = True

    def settle(self) -> None:
        """Resolve the future; runs in the loop of the caller."""
        if self.future.done():  # the caller was cancelled
            return
        if self.error is None:
            self.future.set_result(self.value)
        elif isinstance(self.error, StopIteration):  # no future takes this one
            self.future.set_exception(RuntimeError("a job raised StopIteration"))
        else:
            self.future.set_exception(self.error)


def deliver(jobs: Iterable[Job]) -> None:
    """Hand the outcomes to the callers: one wake-up per loop, from any thread."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, mine in by_loop.items():
        with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits
            loop.call_soon_threadsafe(_settle, mine)


def _settle(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.settle()


def fail(jobs: Sequence[Job], error: StoreUnavailable) -> None:
    """Deliver the final outcomes among ``jobs``, and ``error`` to the others."""
    for job in jobs:
        if not job.final:
            job.end(StoreUnavailable(str(error)))
    deliver(jobs)
