"""
Real processes on one store, let loose at the same moment.

A task is an async function at the top of a module, ``task(store, owner, *args)``. A process opens
the store, registers as an owner, and then runs the tasks that it is given, until it is killed.
"""

from __future__ import annotations

import asyncio
import traceback
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from clew.core.ids import OwnerId
from clew.store.opening import open_store
from tests.forking import FORKS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    Task = Callable[..., Awaitable[object]]

#: Seconds after which a process that says nothing is taken for hung.
_PATIENCE = 90


class Failed(Exception):
    """A task raised; the text is its traceback."""


@dataclass(frozen=True, kw_only=True)
class Racer:
    """One process."""

    process: BaseProcess
    pipe: Connection[Any, Any]

    def tell(self, task: Task | None, *args: object) -> None:
        """Have it begin a task; ``None``: open the store and register."""
        self.pipe.send((task, args))

    def hear(self) -> Any:
        """Return the result of its task."""
        assert self.pipe.poll(_PATIENCE), "a process has hung"
        failed, value = self.pipe.recv()
        if failed:
            raise Failed(value)
        return value

    def do(self, task: Task, *args: object) -> Any:
        self.tell(task, *args)
        return self.hear()


@contextmanager
def racer(url: str, home: Path, owner: str, *, opened: bool = True) -> Generator[Racer]:
    """A process for the length of the block; then it is killed."""
    ours, theirs = FORKS.Pipe()
    process = FORKS.Process(target=_live, args=(theirs, url, home, owner), daemon=True)
    process.start()
    theirs.close()
    one = Racer(process=process, pipe=cast("Connection[Any, Any]", ours))
    try:
        assert one.hear() == "started"
        if opened:
            one.tell(None)
            assert one.hear() == "opened"
        yield one
    finally:
        process.kill()
        process.join()
        ours.close()


def race(url: str, home: Path, processes: int, task: Task | None, *args: object) -> list[Any]:
    """
    Return the results of so many processes, which begin at once and live until all have finished.

    Without a task they open the store, which nobody has opened before.
    """
    with ExitStack() as stack:
        racers = [
            stack.enter_context(racer(url, home, f"own_{n}", opened=task is not None))
            for n in range(processes)
        ]
        for one in racers:
            one.tell(task, *args)
        return [one.hear() for one in racers]


def _live(pipe: Connection[Any, Any], url: str, home: Path, owner: str) -> None:
    pipe.send((False, "started"))
    asyncio.run(_serve(pipe, url, home, OwnerId(owner)))


async def _serve(pipe: Connection[Any, Any], url: str, home: Path, owner: OwnerId) -> None:
    store = None
    while True:
        # In a thread, so that the lease of life goes on.
        task, args = await asyncio.to_thread(pipe.recv)
        try:
            if store is None:
                store = await open_store(url, home=home)
                await store.register_owner(owner)
            answer = "opened" if task is None else await task(store, owner, *args)
        except Exception:  # noqa: BLE001 - told to the parent
            pipe.send((True, traceback.format_exc()))
        else:
            pipe.send((False, answer))
