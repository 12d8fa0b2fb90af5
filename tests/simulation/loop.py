"""An event loop with virtual time, and a seeded choice between processes that are ready."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any, NoReturn, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from random import Random

#: The process that a callback belongs to: a life of a gateway, the clients, or the world.
PROCESS: ContextVar[str] = ContextVar("process", default="world")

#: Virtual seconds that a step takes, so that a timer can come due in the middle of work.
_STEP = 2e-5


class NothingLeft(Exception):
    """Everything waits, and nothing will come."""


class VirtualLoop(asyncio.BaseEventLoop):
    """
    Runs one callback at a time.

    Callbacks of one process run in the order that asyncio promises; which process is next is
    chosen. A *dead* process runs no more, a *frozen* one not until it is thawed.
    """

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random, self._now = random, 1000.0
        self._lines: dict[str, deque[asyncio.Handle]] = {}
        self._dead: set[str] = set()
        self._frozen: set[str] = set()
        self._awaited: dict[str, tuple[int, Callable[[], None]]] = {}
        #: What a dead process had; it is not ended, since nothing of it may run any more.
        self._remains: list[object] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self.steps = 0
        self.set_task_factory(cast("Any", self._make_task))

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **how: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, **how)
        # Kept: a task of a dead process must not be collected, which would run its ``finally``.
        self._tasks.append(task)
        if len(self._tasks) % 4096 == 0:
            self._tasks = [each for each in self._tasks if not each.done()]
        return task

    # What asyncio asks of a loop

    def time(self) -> float:
        return self._now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:
        raise RuntimeError(f"the simulation has no threads: {func}")

    def call_soon_threadsafe(
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def _process_events(self, event_list: object) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps."""

    def _run_once(self) -> None:
        for _ in range(64):
            if cast("Any", self)._stopping:
                return
            self._step()

    # The choice

    def _step(self) -> None:
        self._move_due()
        self._sort_ready()
        names = [name for name, line in self._lines.items() if line and name not in self._frozen]
        if not names:
            self._advance()
            return
        name = names[0] if len(names) == 1 else self._random.choice(names)
        handle = self._lines[name].popleft()
        self._now += _STEP
        self.steps += 1
        if not handle.cancelled():
            cast("Any", handle)._run()
        if name in self._awaited:
            self._count_down(name)

    def _sort_ready(self) -> None:
        ready: deque[asyncio.Handle] = cast("Any", self)._ready
        while ready:
            handle = ready.popleft()
            name: str = cast("Any", handle)._context.get(PROCESS, "world")
            if name in self._dead:
                self._remains.append(handle)
            else:
                self._lines.setdefault(name, deque()).append(handle)

    def _move_due(self) -> None:
        inner: Any = self
        scheduled, ready = inner._scheduled, inner._ready
        while scheduled and (scheduled[0]._cancelled or scheduled[0]._when <= self._now):
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)

    def _advance(self) -> None:
        scheduled: list[asyncio.TimerHandle] = cast("Any", self)._scheduled
        if not scheduled:
            raise NothingLeft
        self._now = max(self._now, scheduled[0].when())

    def _count_down(self, name: str) -> None:
        left, callback = self._awaited.pop(name)
        if left > 1:
            self._awaited[name] = left - 1, callback
        else:
            callback()

    # What fate does to processes

    def after_steps(self, name: str, steps: int, callback: Callable[[], None]) -> None:
        """Have a function called once a process has made so many more steps."""
        self._awaited[name] = steps, callback

    def kill(self, name: str) -> None:
        """Never run anything of a process again."""
        self._dead.add(name)
        self._awaited.pop(name, None)
        self._remains.append(self._lines.pop(name, None))

    def is_dead(self, name: str) -> bool:
        """Return whether a process was killed."""
        return name in self._dead

    def freeze(self, name: str) -> None:
        """Run nothing of a process for now."""
        self._frozen.add(name)

    def thaw(self, name: str) -> None:
        """Let a process go on."""
        self._frozen.discard(name)

    def bury(self) -> None:
        """End everything silently; the loop can be closed after that."""
        for task in self._tasks:
            if not task.done():
                cast("Any", task)._log_destroy_pending = False
                with suppress(BaseException):
                    cast("Any", task.get_coro()).close()
        self._remains.clear()
        self._tasks.clear()
        self._lines.clear()
        cast("Any", self)._scheduled.clear()


def context_of(process: str) -> Context:
    """Return a context in which everything belongs to a process."""
    context = copy_context()
    context.run(PROCESS.set, process)
    return context
